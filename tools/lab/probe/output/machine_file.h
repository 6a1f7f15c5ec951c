// The machine file: the few numbers about a machine that the planner's simulator uses, as measured by the probe or
// written by hand. Sections of the probe fill it, its main writes it, tools/lab/machines reads it for `reprise plan`
// and `simulate`; machine_keys.def has a row for each key. A number that was not measured is absent, never estimated.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "preload/trace/status.h"
#include "tools/lab/probe/output/report.h"

namespace reprise::probe {

// What is the same in every file.
namespace machine_fixed {
#define MACHINE_FIXED(key, value, help) inline constexpr auto key = value;
#include "tools/lab/probe/output/machine_rows.h"
}  // namespace machine_fixed

// Its fields have the names of the keys; what each one means and its unit: machine_keys.def.
struct Machine {
#define MACHINE_TEXT(key, unit, presence, help) std::string key;
#define MACHINE_FLAG(key, unit, presence, help) bool key = false;
#define MACHINE_SIZE(key, unit, presence, help) uint64_t key = 0;
#define MACHINE_NUMBER(key, field, unit, lowest, standard, help) std::optional<double> key;
#define MACHINE_UNUSED_NUMBER(key, unit, lowest, help) std::optional<double> key;
#include "tools/lab/probe/output/machine_rows.h"
};

Json to_json(const Machine& machine);
// Refuses another format or version, wrong types, and rates that are not positive.
Result<Machine> machine_from_json(const Json& json);
// Takes from `other` what `machine` does not have yet.
void merge(Machine& machine, const Machine& other);

Status write_machine(const Machine& machine, const std::string& path);
Result<Machine> read_machine(const std::string& path);
// The same for the text of a file, which errors call `name`.
Result<Machine> parse_machine(const std::string& text, const std::string& name);

}  // namespace reprise::probe
