// `reprise workload`: task graphs of published workloads, with real shapes and times by the roofline.
#include <fmt/core.h>
#include <zstd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/options.h"
#include "tools/cli/outputs.h"
#include "tools/lab/graphs/json_graph.h"
#include "tools/lab/machines/machines.h"
#include "tools/lab/workloads/registry.h"

namespace reprise::tools {
namespace {

constexpr const char* kDefaultMachine = "h200";
constexpr int kPacking = 9;

struct WorkloadArguments {
  std::map<std::string, workloads::Settings> settings;  // by workload
  std::map<std::string, std::string> machines;
  std::map<std::string, std::string> outputs;
};

bool packed(const std::string& path) { return path.size() > 4 && path.compare(path.size() - 4, 4, ".zst") == 0; }

Result<std::string> pack(const std::string& text) {
  std::string result(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(result.data(), result.size(), text.data(), text.size(), kPacking);
  if (ZSTD_isError(size) != 0) return Status(StatusCode::internal, "zstd cannot pack the graph");
  result.resize(size);
  return result;
}

// What a person would type to get this graph again.
std::string source_of(const workloads::Row& row, const workloads::Settings& settings, const std::string& machine) {
  std::string text = fmt::format("reprise workload {}", row.name);
  for (const workloads::Parameter& parameter : row.parameters) {
    const uint64_t value = settings[parameter.name];
    if (!parameter.is_flag()) text += fmt::format(" --{} {}", parameter.name, value);
    if (parameter.is_flag() && value != 0) text += fmt::format(" --{}", parameter.name);
  }
  return text + " --machine " + machine;
}

int run_workload(const workloads::Row& row, WorkloadArguments& arguments) {
  const std::string& output = arguments.outputs[row.name];
  const std::string& machine_name = arguments.machines[row.name];
  workloads::Settings& settings = arguments.settings[row.name];
  if (output != "-" && !is_graph_path(output)) {
    return fail_usage(fmt::format("-o {}: the name of a task graph ends with .json or .json.zst", output));
  }
  const Status writable = Outputs().reads(machine_name).writes("-o", output).check();
  if (!writable.ok()) return fail(writable);
  const Result<analyzer::Machine> machine = find_machine(machine_name);
  if (!machine.ok()) return fail(machine.status());
  settings.machine = machine.value();
  Result<workloads::Draft> draft = row.build(settings);
  if (!draft.ok()) return fail(draft.status());
  if (const Status sensible = workloads::check_draft(draft.value()); !sensible.ok()) return fail(sensible);
  draft.value().machine = machine_name;
  Result<std::string> text = workloads::to_json(draft.value(), source_of(row, settings, machine_name));
  if (packed(output)) text = pack(text.value());
  const Status status = text.ok() ? write_file(output, text.value()) : text.status();
  return status.ok() ? 0 : fail(status);
}

void declare_row(CLI::App& command, const workloads::Row& row, WorkloadArguments& arguments) {
  CLI::App* app = command.add_subcommand(row.name, row.help);
  arguments.settings[row.name] = workloads::presets(row, {});
  arguments.machines[row.name] = kDefaultMachine;
  arguments.outputs[row.name] = "-";
  for (const workloads::Parameter& parameter : row.parameters) {
    uint64_t& value = arguments.settings[row.name].values[parameter.name];
    const std::string option = std::string("--") + parameter.name;
    if (parameter.is_flag()) {
      app->add_flag(option, value, parameter.help);
    } else {
      app->add_option(option, value, parameter.help)
          ->capture_default_str()
          ->check(CLI::Range(parameter.least, parameter.most));
    }
  }
  name_values(app->add_option("--machine", arguments.machines[row.name], "Whose rates, or a machine file"), "MACHINE",
              machine_names())
      ->capture_default_str();
  app->add_option("-o,--output", arguments.outputs[row.name], "NAME.json or NAME.json.zst (default: stdout)");
}

}  // namespace

Action declare_workload(CLI::App& app, const ProgramArguments&) {
  auto arguments = std::make_shared<WorkloadArguments>();
  app.require_subcommand(0, 1);
  for (const workloads::Row& row : workloads::all_workloads()) declare_row(app, row, *arguments);
  return [&app, arguments] {
    if (app.get_subcommands().empty()) return fail_usage("no workload given; see 'reprise workload --help'");
    const workloads::Row* row = workloads::find_workload(app.get_subcommands().front()->get_name());
    return run_workload(*row, *arguments);
  };
}

}  // namespace reprise::tools
