#include "tools/lab/probe/output/machine_file.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <type_traits>

#include "tools/lab/probe/output/output.h"

namespace reprise::probe {
namespace {

enum class Lowest : uint8_t { positive, zero };
struct Field {
  const char* key;
  std::optional<double> Machine::*value;
  Lowest lowest;
};
constexpr Field kFields[] = {
#define MACHINE_NUMBER(key, field, unit, lowest, standard, help) {#key, &Machine::key, Lowest::lowest},
#define MACHINE_UNUSED_NUMBER(key, unit, lowest, help) {#key, &Machine::key, Lowest::lowest},
#include "tools/lab/probe/output/machine_rows.h"
};

// Files written by hand may leave out where the numbers come from.
enum class Presence : uint8_t { optional, required };

constexpr double kNumberLimit = 0x1p62;

bool is_size(const Json& json) {
  return json.is_number() && json.get<double>() >= 0 && json.get<double>() < kNumberLimit;
}

// False: the value is none of its key. A number that the type cannot hold must not be converted to it.
template <typename Value>
bool read(const Json& json, const char* key, Presence presence, Value& value) {
  if (presence == Presence::optional && !json.contains(key)) return true;
  const Json& found = json.at(key);
  if (std::is_same_v<Value, uint64_t> && !is_size(found)) return false;
  value = found.get<Value>();
  return true;
}

Status corrupt(const std::string& why) { return {StatusCode::corrupt, "not a machine file: " + why}; }

}  // namespace

Json to_json(const Machine& machine) {
  Json json = Json::object();
#define MACHINE_FIXED(key, value, help) json[#key] = machine_fixed::key;
#define MACHINE_TEXT(key, unit, presence, help) json[#key] = machine.key;
#define MACHINE_FLAG(key, unit, presence, help) json[#key] = machine.key;
#define MACHINE_SIZE(key, unit, presence, help) json[#key] = machine.key;
#include "tools/lab/probe/output/machine_rows.h"
  for (const Field& field : kFields) {
    if (const auto& value = machine.*field.value) json[field.key] = *value;
  }
  return json;
}

Result<Machine> machine_from_json(const Json& json) {
  if (!json.is_object() || json.value("format", Json()) != machine_fixed::format) {
    return corrupt(fmt::format("no \"format\": \"{}\"", machine_fixed::format));
  }
  try {
    if (json.at("version") != machine_fixed::version) {
      return Status(StatusCode::unsupported, fmt::format("machine file of version {}, this build knows {}",
                                                         json.at("version").dump(), machine_fixed::version));
    }
    Machine machine;
    bool good = true;
#define MACHINE_TEXT(key, unit, presence, help) good = good && read(json, #key, Presence::presence, machine.key);
#define MACHINE_FLAG(key, unit, presence, help) good = good && read(json, #key, Presence::presence, machine.key);
#define MACHINE_SIZE(key, unit, presence, help) good = good && read(json, #key, Presence::presence, machine.key);
#include "tools/lab/probe/output/machine_rows.h"
    if (!good) return corrupt("a size is no number of bytes");
    for (const Field& field : kFields) {
      if (!json.contains(field.key)) continue;
      const auto value = json.at(field.key).get<double>();
      const bool may_be_zero = field.lowest == Lowest::zero;
      const bool valid = std::isfinite(value) && value < kNumberLimit && (may_be_zero ? value >= 0 : value > 0);
      if (!valid) return corrupt(fmt::format("{} is not a {} number", field.key, may_be_zero ? "valid" : "positive"));
      machine.*field.value = value;
    }
    return machine;
  } catch (const nlohmann::json::exception& error) {
    return corrupt(error.what());
  }
}

void merge(Machine& machine, const Machine& other) {
  for (const Field& field : kFields) {
    if (!(machine.*field.value)) machine.*field.value = other.*field.value;
  }
}

Status write_machine(const Machine& machine, const std::string& path) {
  return write_text(path, to_json(machine).dump(2) + "\n");
}

Result<Machine> read_machine(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(StatusCode::not_found, "cannot open the machine file " + path);
  return parse_machine({std::istreambuf_iterator<char>(file), {}}, path);
}

Result<Machine> parse_machine(const std::string& text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return corrupt(name + " is not JSON");
  return machine_from_json(json);
}

}  // namespace reprise::probe
