// Section 8: does a kernel that is launched again on the same inputs give the same bits, whatever its outputs held
// before and whatever runs beside it? The planner may recompute by re-launching only what does. The probe's own kernels
// are launched again by the driver with the same parameters; library kernels are called again through their libraries.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "tools/lab/probe/output/section.h"
#include "tools/lab/probe/subjects/cupti_library.h"
#include "tools/lab/probe/subjects/subprocess.h"

namespace reprise::probe {
namespace {

constexpr unsigned kRunsOfKernel = 100;
constexpr uint64_t kBufferWords = 1 << 20;

struct Buffers {
  DeviceBuffer in, out, other_in, other_out;
  Stream stream, other_stream;
};

Result<Buffers> make_buffers(const Device& device) {
  Buffers buffers;
  for (DeviceBuffer* buffer : {&buffers.in, &buffers.out, &buffers.other_in, &buffers.other_out}) {
    auto made = device.allocate(kBufferWords * sizeof(uint32_t));
    if (!made.ok()) return made.status();
    *buffer = std::move(made.value());
  }
  for (Stream* stream : {&buffers.stream, &buffers.other_stream}) {
    auto made = device.make_stream();
    if (!made.ok()) return made.status();
    *stream = std::move(made.value());
  }
  return Result<Buffers>(std::move(buffers));
}

struct OwnKernel {
  const char* name;
  CUresult (*run)(const Device& device, CUfunction function, const Buffers& buffers);
};
const OwnKernel kKernels[] = {{"probe_fill",
                               [](const Device& d, CUfunction f, const Buffers& b) {
                                 return launch(d, f, 256, 256, b.stream.get(), b.out.get(), kBufferWords, 7u);
                               }},
                              {"probe_stream",
                               [](const Device& d, CUfunction f, const Buffers& b) {
                                 return launch(d, f, 256, 256, b.stream.get(), b.in.get(), b.out.get(), kBufferWords);
                               }},
                              {"probe_compute",
                               [](const Device& d, CUfunction f, const Buffers& b) {
                                 return launch(d, f, kBufferWords / 256, 256, b.stream.get(), b.out.get(), 50u);
                               }},
                              {"probe_layer_norm", [](const Device& d, CUfunction f, const Buffers& b) {
                                 return launch(d, f, kBufferWords / 1024, 256, b.stream.get(), b.in.get(), b.out.get(),
                                               1024u);
                               }}};

// The output after poisoning it and launching.
Status run_poisoned(const Device& device, const OwnKernel& kernel, CUfunction function, const Buffers& buffers,
                    uint32_t poison, std::vector<uint32_t>& output) {
  const Driver& driver = device.driver();
  PROBE_CALL(driver, cuMemsetD32Async, buffers.out.get(), poison, kBufferWords, buffers.stream.get());
  PROBE_TRY(check(driver, kernel.run(device, function, buffers), "cuLaunchKernel"));
  PROBE_CALL(driver, cuStreamSynchronize, buffers.stream.get());
  PROBE_CALL(driver, cuMemcpyDtoH, output.data(), buffers.out.get(), kBufferWords * sizeof(uint32_t));
  return Status::success();
}

Status own_kernel(SectionContext& context, const OwnKernel& kernel, const Buffers& buffers) {
  const Device& device = context.device;
  const auto function = device.kernel(kernel.name);
  const auto busy = device.kernel("probe_stream");
  for (const Status& status : {function.status(), busy.status()}) PROBE_TRY(status);
  std::vector<uint32_t> reference(kBufferWords);
  std::vector<uint32_t> output(kBufferWords);
  PROBE_TRY(run_poisoned(device, kernel, function.value(), buffers, 0x7fc0dead, reference));
  for (const bool beside : {false, true}) {
    unsigned equal = 0;
    unsigned done = 0;
    while (done < kRunsOfKernel && !context.limit.over()) {
      if (beside)
        PROBE_TRY(check(device.driver(),
                        launch(device, busy.value(), 64, 256, buffers.other_stream.get(), buffers.other_in.get(),
                               buffers.other_out.get(), kBufferWords),
                        "cuLaunchKernel"));
      PROBE_TRY(run_poisoned(device, kernel, function.value(), buffers, 0x7fc00000u + done, output));
      equal += output == reference ? 1u : 0u;
      ++done;
    }
    context.report.fact(fmt::format("{}, {}", kernel.name, beside ? "another kernel beside" : "alone"),
                        Json{{"repeats", done}, {"equal", equal}});
  }
  return Status::success();
}

Status own_kernels(SectionContext& context) {
  const auto buffers = make_buffers(context.device);
  if (!buffers.ok()) return buffers.status();
  const auto fill = context.device.kernel("probe_fill");
  if (!fill.ok()) return fill.status();
  // Floats of every size, not-a-numbers among them: the bits must still be equal.
  for (const DeviceBuffer* buffer : {&buffers.value().in, &buffers.value().other_in}) {
    PROBE_TRY(check(
        context.driver,
        launch(context.device, fill.value(), 256, 256, buffers.value().stream.get(), buffer->get(), kBufferWords, 3u),
        "cuLaunchKernel"));
  }
  for (const OwnKernel& kernel : kKernels) {
    if (context.limit.over()) break;
    PROBE_TRY(own_kernel(context, kernel, buffers.value()));
  }
  return Status::success();
}

// A program that prints a JSON object for each kernel it has tried, {"kernel":..., "repeats":..., "equal":...}.
// `share`: of the time that is left.
Status program(SectionContext& context, const std::string& name, std::vector<std::string> arguments, double share) {
  const auto outcome = run_command({std::move(arguments),
                                    {{"LD_LIBRARY_PATH", library_path(context.options.python)}},
                                    std::max(1.0, context.limit.seconds_left() * share)});
  if (!outcome.ok()) return outcome.status();
  std::istringstream lines(outcome.value().output);
  for (std::string line; std::getline(lines, line);) {
    Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("kernel")) continue;
    const std::string kernel = json["kernel"].is_string() ? json["kernel"].get<std::string>() : json["kernel"].dump();
    json.erase("kernel");
    context.report.fact(fmt::format("{}: {}", name, kernel), json);
  }
  if (outcome.value().exit_code == 0) return Status::success();
  const std::string& said =
      outcome.value().error_output.empty() ? outcome.value().output : outcome.value().error_output;
  return {StatusCode::io_error, fmt::format("ended with {}{}: {}", outcome.value().exit_code,
                                            outcome.value().timed_out ? ", out of time" : "", last_line(said))};
}

}  // namespace

void measure_purity(SectionContext& context) {
  attempt(context, "own kernels", own_kernels);
  if (context.driver.simulated) {
    context.report.note("libraries do not run on the simulated device");
    return;
  }
  const std::pair<const char*, const char*> libraries[] = {{"cuBLAS", "probe-cublas"}, {"cuDNN", "probe-cudnn"}};
  for (const auto& library : libraries) {
    const std::string path = beside_program(library.second);
    if (access(path.c_str(), X_OK) != 0) {
      context.report.note(fmt::format("{}: not built: the toolkit had no header for it", library.first));
      continue;
    }
    attempt(context, library.first, [&](SectionContext& c) {
      return program(c, library.first, {path, "--purity"}, 0.35);
    });
  }
  const std::string python = find_program(context.options.python);
  if (python.empty()) return context.report.note("torch: no python3");
  attempt(context, "torch", [&](SectionContext& c) {
    return program(c, "torch", {python, beside_program("../share/reprise/probe/torch_purity.py")}, 1);
  });
}

}  // namespace reprise::probe
