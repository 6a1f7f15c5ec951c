#include "tools/lab/probe/subjects/allocators.h"

#include "tools/lab/probe/subjects/counted_programs.h"

namespace reprise::probe {
namespace {

constexpr const char* kOlder = "PYTORCH_CUDA_ALLOC_CONF";
constexpr const char* kNewer = "PYTORCH_ALLOC_CONF";
constexpr const char* kBackend = "backend:cudaMallocAsync";

struct Choice {
  const char* name;
  const char* script;
  std::vector<std::pair<std::string, std::string>> environment;  // an empty value: whatever the user has set is removed
};

// The launcher sets both of torch's variables (tools/launch/environment.cpp): which version reads which is the
// question.
const std::vector<Choice>& choices() {
  static const auto& all = *new std::vector<Choice>{
      {"torch allocator, default", "torch_allocator", {{kOlder, ""}, {kNewer, ""}}},
      {"torch allocator, PYTORCH_CUDA_ALLOC_CONF", "torch_allocator", {{kOlder, kBackend}, {kNewer, ""}}},
      {"torch allocator, PYTORCH_ALLOC_CONF", "torch_allocator", {{kOlder, ""}, {kNewer, kBackend}}},
      {"torch allocator, as the launcher sets it", "torch_allocator", {{kOlder, kBackend}, {kNewer, kBackend}}},
      {"torch allocator, expandable segments", "torch_allocator", {{kOlder, "expandable_segments:True"}, {kNewer, ""}}},
      {"jax allocator, default", "jax_ops", {{"XLA_PYTHON_CLIENT_ALLOCATOR", ""}}},
      {"jax allocator, as the launcher sets it", "jax_ops", {{"XLA_PYTHON_CLIENT_ALLOCATOR", "platform"}}}};
  return all;
}

}  // namespace

Status report_allocators(SectionContext& context) {
  std::vector<CountedProgram> programs;
  for (const Choice& choice : choices()) {
    programs.push_back(python_program(context, choice.script));
    programs.back().name = choice.name;
    programs.back().environment = choice.environment;
  }
  for (const Counted& counted : run_counted(context, programs, "")) {
    if (!usable(context, counted)) continue;
    context.report.fact(counted.program.name,
                        Json{{"program", counted.said()}, {"calls", counted.counts.value("memory_calls", Json())}});
  }
  return Status::success();
}

}  // namespace reprise::probe
