#include "tools/lab/probe/output/machine_file.h"

#include "tests/support/test.h"

namespace reprise::probe {
namespace {

Machine example() {
  Machine machine;
  machine.device = "a device";
  machine.driver = "CUDA 13.0";
  machine.measured_at = "2026-01-02T03:04:05Z";
  machine.memory_bytes = uint64_t{1} << 37;
  machine.h2d_bytes_per_second = 55e9;
  machine.copy_latency_ns = 1500;
  return machine;
}

TEST(MachineFile, ReadsBackWhatItWrote) {
  const std::string path = testing::TempDir() + "machine" + std::to_string(getpid()) + ".json";
  ASSERT_TRUE(write_machine(example(), path).ok());
  const auto again = read_machine(path);
  std::remove(path.c_str());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(to_json(again.value()), to_json(example()));
  EXPECT_EQ(again.value().h2d_bytes_per_second, 55e9);
}

TEST(MachineFile, WhatWasNotMeasuredIsAbsent) {
  const Json json = to_json(example());
  EXPECT_FALSE(json.contains("d2h_bytes_per_second"));
  EXPECT_FALSE(machine_from_json(json).value().d2h_bytes_per_second);
}

TEST(MachineFile, RefusesWhatItCannotTrust) {
  for (const char* change : {R"({"format": "other"})", R"({"version": 99})", R"({"h2d_bytes_per_second": -1})",
                             R"({"h2d_bytes_per_second": "fast"})", R"({"memory_bytes": null})", R"({"device": 7})",
                             R"({"memory_bytes": -1})", R"({"memory_bytes": 1e300})", R"({"version": 1e300})",
                             R"({"version": true})", R"({"memory_bytes": true})"}) {
    Json json = to_json(example());
    json.merge_patch(Json::parse(change));
    EXPECT_FALSE(machine_from_json(json).ok()) << change;
  }
  EXPECT_FALSE(machine_from_json(Json::array()).ok());
  Json newer = to_json(example());
  newer["version"] = 99;
  EXPECT_EQ(machine_from_json(newer).status().code(), StatusCode::unsupported);
}

TEST(MachineFile, FilesThatAreMissingOrNoJson) {
  EXPECT_EQ(read_machine("/nonexistent/machine.json").status().code(), StatusCode::not_found);
  const std::string path = testing::TempDir() + "broken" + std::to_string(getpid()) + ".json";
  std::ofstream(path) << "{ \"format\": ";
  EXPECT_EQ(read_machine(path).status().code(), StatusCode::corrupt);
  std::remove(path.c_str());
}

TEST(MachineFile, AFailedWriteLeavesNothingBehind) {
  EXPECT_EQ(write_machine(example(), "/nonexistent/machine.json").code(), StatusCode::io_error);
}

TEST(MachineFile, MergingKeepsWhatIsThere) {
  Machine machine = example();
  Machine other;
  other.h2d_bytes_per_second = 1;
  other.d2h_bytes_per_second = 2;
  merge(machine, other);
  EXPECT_EQ(machine.h2d_bytes_per_second, 55e9);
  EXPECT_EQ(machine.d2h_bytes_per_second, 2);
}

}  // namespace
}  // namespace reprise::probe
