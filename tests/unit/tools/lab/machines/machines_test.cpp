// The rows of the machine file against the planner's machine: each number arrives in its field, and the default that
// FORMAT shows is the field's.
#include "tools/lab/machines/machines.h"

#include "tests/support/test.h"

namespace reprise::tools {
namespace {

struct Row {
  const char* key;
  const char* standard;
  double field;      // of a machine about which nothing is known
  double from_file;  // of one whose file has each key, 1001, 1002, ...
};

probe::Machine with_every_number() {
  probe::Machine machine;
  double value = 1000;
#define MACHINE_NUMBER(key, field, unit, lowest, standard, help) machine.key = ++value;
#include "tools/lab/probe/output/machine_rows.h"
  return machine;
}

std::vector<Row> rows() {
  const analyzer::Machine unknown;
  const analyzer::Machine known = to_planner(with_every_number());
  return {
#define MACHINE_NUMBER(key, field, unit, lowest, standard, help) \
  {#key, standard, static_cast<double>(unknown.field), static_cast<double>(known.field)},
#include "tools/lab/probe/output/machine_rows.h"
  };
}

TEST(Machines, TheDefaultsOfTheTableAreThePlanners) {
  for (const Row& row : rows()) {
    char* end = nullptr;
    const double number = std::strtod(row.standard, &end);
    EXPECT_EQ(row.field, *end == '\0' ? number : 0) << row.key << ": " << row.standard;
  }
}

TEST(Machines, EachNumberOfTheFileArrivesInAFieldOfItsOwn) {
  double value = 1000;
  for (const Row& row : rows()) EXPECT_EQ(row.from_file, ++value) << row.key;
}

TEST(Machines, EveryKeyIsWrittenAndRead) {
  probe::Machine machine = with_every_number();
  machine.device = "a device";
  machine.driver = "a driver";
  machine.simulated = true;
  machine.memory_bytes = 4096;
  const probe::Json json = probe::to_json(machine);
  EXPECT_EQ(json.size(), 7 + rows().size());
  EXPECT_EQ(probe::to_json(good(probe::machine_from_json(json))), json);
}

}  // namespace
}  // namespace reprise::tools
