// The workloads that can be generated, one row each: what it is called, which options it has, what builds it. Called by
// `reprise workload` and by tests.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "preload/trace/status.h"
#include "tools/lab/workloads/builder.h"

namespace reprise::tools::workloads {

// An option of a workload: a whole number, or a flag when it may only be 0 or 1.
struct Parameter {
  const char* name;
  const char* help;
  uint64_t preset = 0;
  uint64_t least = 0;
  uint64_t most = 1;
  bool is_flag() const { return least == 0 && most == 1; }
};

struct Settings {
  std::map<std::string, uint64_t> values;  // one for each parameter of the workload
  analyzer::Machine machine;
  uint64_t operator[](const char* name) const { return values.at(name); }
};

struct Row {
  const char* name;
  const char* help;
  std::vector<Parameter> parameters;
  Result<Draft> (*build)(const Settings& settings);
};

const std::vector<Row>& all_workloads();
const Row* find_workload(const std::string& name);
// The presets of a row; callers change what they were told.
Settings presets(const Row& row, const analyzer::Machine& machine);

Result<Draft> build_bert(const Settings& settings);
Result<Draft> build_gpt(const Settings& settings);
Result<Draft> build_inceptionv3(const Settings& settings);
Result<Draft> build_llama_prefill(const Settings& settings);
Result<Draft> build_llama_lora(const Settings& settings);
Result<Draft> build_resnet152(const Settings& settings);
Result<Draft> build_senet154(const Settings& settings);
Result<Draft> build_vit(const Settings& settings);

}  // namespace reprise::tools::workloads
