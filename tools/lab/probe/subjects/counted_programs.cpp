#include "tools/lab/probe/subjects/counted_programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "tools/lab/probe/subjects/cupti_library.h"
#include "tools/lab/probe/subjects/subprocess.h"

namespace reprise::probe {
namespace {

namespace fs = std::filesystem;

constexpr int kExitSkipped = 77;  // the scripts' and programs' way to say that a library is not here

Json number_or_zero(const Json& json, const char* key) { return json.contains(key) ? json[key] : Json(0); }

// Adds up what the processes of one program wrote (PATH.<pid> each) and removes the files.
Json collect(const fs::path& output) {
  Json sum = Json::object();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(output.parent_path(), error)) {
    if (!entry.path().filename().string().starts_with(output.filename().string() + ".")) continue;
    std::ifstream file(entry.path());
    const Json one = Json::parse(file, nullptr, false);
    if (!one.is_object()) continue;
    for (const auto& [key, value] : one.items()) {
      if (value.is_object()) {
        for (const auto& [name, count] : value.items())
          sum[key][name] = number_or_zero(sum[key], name.c_str()).get<uint64_t>() + count.get<uint64_t>();
        if (value.empty() && !sum.contains(key)) sum[key] = Json::object();
      } else if (value.is_number()) {
        sum[key] = number_or_zero(sum, key.c_str()).get<uint64_t>() + value.get<uint64_t>();
      } else if (value.is_array()) {
        for (const Json& item : value) sum[key].push_back(item);
        if (!sum.contains(key)) sum[key] = Json::array();
      } else {
        sum[key] = value;
      }
    }
  }
  return sum;
}

// A folder for the shim's files; removed with all in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "reprise-probe-XXXXXX").string();
    if (mkdtemp(name.data())) path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct Surroundings {
  std::string cupti;      // empty: launches are counted only
  std::string libraries;  // LD_LIBRARY_PATH
};

Command command_of(const SectionContext& context, const CountedProgram& program, const fs::path& output,
                   const Surroundings& around) {
  Command command{program.arguments,
                  {{"REPRISE_COUNT_DRIVER", context.driver.path},
                   {"REPRISE_DRIVER", ""},  // the program is to ask for libcuda.so.1, as others do
                   {"REPRISE_COUNT_OUTPUT", output.string()},
                   {"REPRISE_COUNT_CUPTI", around.cupti},
                   {"LD_LIBRARY_PATH", around.libraries}},
                  std::clamp(context.limit.seconds_left(), 1.0, program.seconds)};
  if (program.shim == ShimIn::program) command.environment.emplace_back("LD_PRELOAD", counting_shim());
  for (const auto& variable : program.environment) command.environment.push_back(variable);
  return command;
}

Counted run_one(const SectionContext& context, const CountedProgram& program, const fs::path& output,
                const Surroundings& around) {
  Counted counted;
  counted.program = program;
  if (!program.missing.empty() || (context.driver.simulated && !program.on_simulated_device)) {
    counted.skipped = true;
    counted.status =
        Status(StatusCode::unsupported, program.missing.empty() ? "not on the simulated device" : program.missing);
    return counted;
  }
  const auto outcome = run_command(command_of(context, program, output, around));
  if (!outcome.ok()) {
    counted.status = outcome.status();
    return counted;
  }
  const Outcome& end = outcome.value();
  counted.output = end.output;
  counted.counts = collect(output);
  counted.skipped = end.exit_code == kExitSkipped;
  if (end.exit_code != 0) {
    counted.status = Status(StatusCode::io_error,
                            fmt::format("ended with {}{}: {}", end.exit_code, end.timed_out ? ", out of time" : "",
                                        last_line(end.error_output.empty() ? end.output : end.error_output)));
  } else if (program.shim != ShimIn::nobody && !counted.counts.contains("launched")) {
    counted.status =
        Status(StatusCode::io_error, "the shim wrote nothing: it was not loaded, or the driver was not used");
  }
  return counted;
}

uint64_t total(const Json& counts) {
  uint64_t sum = 0;
  for (const auto& [name, count] : counts.items()) sum += count.get<uint64_t>();
  return sum;
}

}  // namespace

Json Counted::said() const {
  const std::string line = last_line(output);
  Json json = Json::parse(line, nullptr, false);
  return json.is_discarded() ? Json(line) : json;
}

uint64_t Counted::launches(const char* kernel) const {
  return number_or_zero(counts.value("launched", Json::object()), kernel).get<uint64_t>();
}

bool usable(SectionContext& context, const Counted& counted) {
  if (counted.status.ok()) return true;
  context.report.note(fmt::format("{}: {}", counted.program.name, counted.status.message()));
  if (!counted.skipped) context.report.set_partial();
  return false;
}

std::string counting_shim() { return beside_program("../lib/probe/libreprise_count.so"); }

std::vector<Counted> run_counted(const SectionContext& context, const std::vector<CountedProgram>& programs,
                                 const std::string& cupti) {
  const TemporaryFolder folder;
  Surroundings around{cupti, library_path(context.options.python)};
  // The simulated device's own libraries come first.
  if (context.driver.simulated)
    around.libraries = fs::path(context.driver.path).parent_path().string() + ":" + around.libraries;
  std::vector<Counted> results(programs.size());
  std::atomic<size_t> next{0};
  const unsigned workers = std::clamp(std::thread::hardware_concurrency() / 2, 1u, 8u);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < workers; ++i) {
    threads.emplace_back([&] {
      for (size_t at = next++; at < programs.size(); at = next++) {
        results[at] = run_one(context, programs[at], folder.path() / fmt::format("counts{}", at), around);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

CountedProgram python_program(const SectionContext& context, const char* script) {
  const std::string python = find_program(context.options.python);
  const std::string path = beside_program(fmt::format("../share/reprise/probe/{}.py", script));
  const char* missing = python.empty()                    ? "no python3"
                        : access(path.c_str(), R_OK) != 0 ? "its script is not beside the probe"
                                                          : "";
  return {script, {python, path}, missing};
}

std::vector<CountedProgram> counted_programs(const SectionContext& context) {
  std::vector<CountedProgram> programs;
  programs.push_back(python_program(context, "torch_compile"));  // first, for it takes by far the longest
  programs.push_back(
      {"probe", {own_path(), "--check", "launches", "--device", std::to_string(context.options.device)}, "", true});
  const auto add = [&](const char* name, const char* file, bool simulated) {
    const std::string path = beside_program(file);
    programs.push_back({name,
                        {path},
                        access(path.c_str(), X_OK) == 0 ? "" : "not built: the toolkit had no header for it",
                        simulated});
  };
  add("runtime, shared", "probe-runtime-shared", true);
  add("runtime, static", "probe-runtime-static", false);
  add("cuBLAS", "probe-cublas", false);
  add("cuDNN", "probe-cudnn", false);
  add("cuFFT", "probe-cufft", false);
  for (const char* script : {"torch_ops", "torch_models", "jax_ops", "triton_ops", "cupy_ops"})
    programs.push_back(python_program(context, script));
  return programs;
}

Parity compare(const Json& counts) {
  Parity parity;
  const Json launched = counts.value("launched", Json::object());
  const Json recorded = counts.value("recorded", Json::object());
  parity.seen = total(launched);
  parity.recorded = total(recorded);
  for (const auto& [name, count] : recorded.items()) {
    const auto seen = number_or_zero(launched, name.c_str()).get<uint64_t>();
    if (count.get<uint64_t>() > seen) parity.missed[name] = count.get<uint64_t>() - seen;
  }
  for (const auto& [name, count] : launched.items()) {
    const auto there = number_or_zero(recorded, name.c_str()).get<uint64_t>();
    if (count.get<uint64_t>() > there) parity.surplus[name] = count.get<uint64_t>() - there;
  }
  return parity;
}

Status report_parity(SectionContext& context) {
  const std::string cupti = context.driver.simulated ? "" : find_cupti(context.options.python);
  if (cupti.empty()) context.report.note("no CUPTI here: launches are counted, but not compared with kernel records");
  for (const Counted& counted : run_counted(context, counted_programs(context), cupti)) {
    if (!usable(context, counted)) continue;
    const Parity parity = compare(counted.counts);
    Json fact = {{"launches_seen", parity.seen}, {"cupti", counted.counts.value("cupti", "off")}};
    if (fact["cupti"] == "on") {
      fact["kernels_recorded"] = parity.recorded;
      fact["records_dropped"] = counted.counts.value("dropped_records", 0);
      fact["missed"] = parity.missed;
      fact["surplus"] = parity.surplus;
    }
    fact["entries"] = counted.counts.value("entries", Json::object());
    fact["memory_calls"] = counted.counts.value("memory_calls", Json::object());
    fact["graph_launches"] = counted.counts.value("graph_launches", 0);
    fact["program"] = counted.said();
    context.report.fact(counted.program.name, fact);
  }
  return Status::success();
}

Status report_library_parameters(SectionContext& context) {
  for (const Counted& counted : run_counted(context, counted_programs(context), "")) {
    if (!usable(context, counted)) continue;
    Json fact = Json::object();
    for (const char* key : {"functions", "functions_with_parameter_info", "functions_without_parameter_info",
                            "launches_with_device_pointer", "launches_without_device_pointer"}) {
      if (counted.counts.contains(key)) fact[key] = counted.counts[key];
    }
    context.report.fact(counted.program.name, fact);
  }
  return Status::success();
}

}  // namespace reprise::probe
