#include "tools/lab/probe/output/report.h"

#include "tests/support/test.h"

namespace reprise::probe {
namespace {

SectionReport example() {
  SectionReport report(2, "vmm");
  report.measure("cuMemMap", "ns", {1200, 1000, 1100}, {{"chunk_bytes", 2097152}, {"gpu", "idle"}});
  report.fact("PROT_READ honoured", true);
  report.note("a line");
  report.set_seconds(1.5);
  return report;
}

TEST(Report, ReadsBackWhatItWrote) {
  const Json json = example().to_json();
  const auto again = good(SectionReport::from_json(Json::parse(json.dump())));
  EXPECT_EQ(again.to_json(), json);
  EXPECT_EQ(again.measurements().at(0).summary.median, 1100);
}

TEST(Report, EveryMeasurementHasUnitRepeatsAndSpread) {
  const Json measurement = example().to_json().at("measurements").at(0);
  EXPECT_EQ(measurement.at("unit"), "ns");
  EXPECT_EQ(measurement.at("repeats"), 3);
  EXPECT_EQ(measurement.at("minimum"), 1000);
  EXPECT_EQ(measurement.at("maximum"), 1200);
}

TEST(Report, NoSamplesMakeANoteAndAPartialSection) {
  SectionReport report(5, "latency");
  report.measure("launch", "ns", {});
  EXPECT_TRUE(report.measurements().empty());
  ASSERT_EQ(report.notes().size(), 1u);
  EXPECT_EQ(report.state(), SectionState::partial);
}

TEST(Report, PartialDoesNotHideAFailure) {
  SectionReport report(5, "latency");
  report.set_state(SectionState::failed);
  report.set_partial();
  EXPECT_EQ(report.state(), SectionState::failed);
}

TEST(Report, TableShowsNumbersForPeople) {
  const std::string table = example().to_table();
  EXPECT_TRUE(has(table, "2. vmm: done"));
  EXPECT_TRUE(has(table, "chunk=2 MiB gpu=idle"));
  EXPECT_TRUE(has(table, "1.1 us"));
  EXPECT_TRUE(has(table, "[1 us .. 1.2 us] x3"));
}

TEST(Report, RefusesWhatIsNoSection) {
  EXPECT_EQ(SectionReport::from_json(Json::parse("{\"number\": 1}")).status().code(), StatusCode::corrupt);
  EXPECT_EQ(SectionReport::from_json(Json::parse("[]")).status().code(), StatusCode::corrupt);
}

TEST(Report, Units) {
  EXPECT_EQ(format_value(4.3e12, "bytes/s"), "4.3 TB/s");
  EXPECT_EQ(format_value(1536, "bytes"), "1.5 KiB");
  EXPECT_EQ(format_value(2.5e9, "ns"), "2.5 s");
  EXPECT_EQ(format_value(0.002, "s"), "2 ms");
  EXPECT_EQ(format_value(1024, "launches"), "1024 launches");
}

}  // namespace
}  // namespace reprise::probe
