// The preloaded library with REPRISE_DEFRAGMENT=1 on the simulated device: the same results as without, from memory
// that is stitched together.
#include "tests/e2e/scripts/script_runner.h"
#include "tests/support/test.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kChunk = 64 * 1024;

Outcome run_defragmented(const std::string& script, const Variables& more = {}) {
  Variables variables = {{"REPRISE_DEFRAGMENT", "1"}, {"REPRISE_FRAGMENTATION_LIMIT", "64KiB"}};
  for (const auto& [name, value] : more) variables[name] = value;
  return run_managed(script, "", variables);
}

uint64_t total(const Outcome& outcome, const std::string& key) {
  const auto lines = lines_of_kind(outcome.run_log, "defragment");
  return lines.size() == 1 ? number_in(lines[0], key) : UINT64_MAX;
}

std::string alloc(const std::string& name, uint64_t chunks, const std::string& stream = "") {
  return "alloc " + name + " " + std::to_string(chunks * kChunk) + " " + stream + "\n";
}
std::string fill(const std::string& name, int value, const std::string& stream = "0") {
  return "memset " + stream + " " + name + " " + std::to_string(value) + "\n";
}
std::string give(const std::string& name, const std::string& stream = "") {
  return "free " + name + " " + stream + "\n";
}

// Holes of two chunks between neighbours that stay; then something as wide as all holes.
std::string comb(int teeth) {
  std::string script;
  for (int i = 0; i < teeth; ++i) script += alloc("t" + std::to_string(i), 2) + fill("t" + std::to_string(i), i + 1);
  for (int i = 0; i < teeth; i += 2) script += give("t" + std::to_string(i));
  script += alloc("wide", static_cast<uint64_t>(teeth)) + fill("wide", 99) + "kernel 0 two wide t1\n";
  return script;
}

void expect_same(const Outcome& plain, const Outcome& ours) {
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(ours.exit_code, 0) << ours.err;
  EXPECT_EQ(ours.output, plain.output) << ours.err;
}

TEST(Defragment, HolesServeWhatIsWiderThanEachOfThem) {
  const Outcome plain = run_plain(comb(16));
  const Outcome ours = run_defragmented(comb(16));
  expect_same(plain, ours);
  EXPECT_EQ(total(ours, "stitches"), 1u);
  EXPECT_EQ(total(ours, "peak_reserved_bytes"), 32 * kChunk);
  EXPECT_EQ(total(ours, "peak_live_bytes"), 32 * kChunk);
  EXPECT_LE(ours.peak_bytes, plain.peak_bytes + kChunk);  // the module's image is the driver's
}

TEST(Defragment, TheSecondTimeCostsNoMapping) {
  std::string loop = "loop 20\n" + alloc("a", 5) + alloc("b", 3) + fill("a", 1) + fill("b", 2) + give("a") +
                     alloc("c", 7) + fill("c", 3) + "kernel 0 two b c\n" + give("b") + give("c") + "end\n";
  const Outcome plain = run_plain(loop);
  const Outcome ours = run_defragmented(loop);
  expect_same(plain, ours);
  EXPECT_GE(total(ours, "exact"), 17 * 3u);
  EXPECT_LE(ours.vmm_calls, 40u);
}

TEST(Defragment, WhatIsFreedOnOneStreamIsNotOverwrittenFromAnother) {
  // The kernels of stream 4 still read what stream 5 gets; both are non-blocking.
  std::string script = alloc("keep", 4, "4") + fill("keep", 9, "4") + "loop 30\n";
  script += alloc("a", 4, "4") + fill("a", 1, "4") + "kernel 4 two keep a\n" + give("a", "4");
  script += alloc("b", 4, "5") + fill("b", 2, "5") + "kernel 5 one b\n" + give("b", "5") + "end\n";
  const Outcome plain = run_plain(script);
  const Outcome ours = run_defragmented(script);
  expect_same(plain, ours);
  EXPECT_GT(total(ours, "waits"), 20u);
}

TEST(Defragment, ADestroyedOrUnknownStreamsMemoryWaitsForEverything) {
  std::string script = alloc("keep", 4) + fill("keep", 9) + "loop 10\n";
  script += alloc("a", 4, "1") + fill("a", 1, "1") + "kernel 1 two keep a\n" + give("a", "1");
  script += alloc("b", 4, "5") + fill("b", 2, "5") + "kernel 5 one b\nssync 5\n" + give("b") + "ssync 1\nend\n";
  expect_same(run_plain(script), run_defragmented(script));
}

TEST(Defragment, OutOfMemoryIsTheDriversAndTheProgramGoesOn) {
  const std::string script = alloc("a", 8) + fill("a", 1) + alloc("b", 200) + give("a") + alloc("c", 12) +
                             fill("c", 2) + alloc("d", 8) + alloc("e", 3) + fill("e", 4);
  const Variables little = {{"REPRISE_SIM_MEMORY", "1MiB"}};
  const Outcome plain = run_plain(script, little);
  const Outcome ours = run_defragmented(script, little);
  expect_same(plain, ours);
  EXPECT_TRUE(has(plain.output, "error 2"));
}

TEST(Defragment, IdleMemoryIsGivenBackToWhoeverAsksTheDriver) {
  // Small requests go to the driver: the 12 chunks that are idle in the stitcher must not be missing there.
  std::string script = alloc("a", 12) + fill("a", 1) + give("a");
  for (int i = 0; i < 20; ++i) {
    script += "alloc s" + std::to_string(i) + " 40000\n" + fill("s" + std::to_string(i), i + 1);
  }
  const Variables little = {{"REPRISE_SIM_MEMORY", "1MiB"}};
  expect_same(run_plain(script, little), run_defragmented(script, little));
}

TEST(Defragment, FreeMemoryIsWhatTheProgramCouldHave) {
  const std::string script = "info\n" + alloc("a", 4) + "info\n" + give("a") + "info\n";
  const Outcome plain = run_plain(script);
  const Outcome ours = run_defragmented(script);
  expect_same(plain, ours);
  EXPECT_TRUE(has(plain.err, "info"));
  EXPECT_EQ(ours.err, plain.err);
}

TEST(Defragment, BelowTheLimitMemoryIsReusedAtItsSizeAndWhenThereIsNoOther) {
  const Variables little = {{"REPRISE_FRAGMENTATION_LIMIT", "512KiB"}, {"REPRISE_SIM_MEMORY", "2100KiB"}};
  const Outcome ours = run_defragmented(comb(16), little);
  expect_same(run_plain(comb(16), {{"REPRISE_SIM_MEMORY", "2100KiB"}}), ours);
  EXPECT_EQ(total(ours, "stitches"), 0u);
  EXPECT_GT(total(ours, "recycled_blocks"), 0u);
}

TEST(Defragment, ADriverThatCannotMapIsSaidOnceAndUsedAsItIs) {
  const Variables without = {{"REPRISE_SIM_FAIL", "cuMemGetAllocationGranularity=801"}};
  const Outcome ours = run_defragmented(comb(8), without);
  expect_same(run_plain(comb(8), without), ours);
  EXPECT_TRUE(has_cause(ours.err, Cause::not_defragmented));
  EXPECT_EQ(ours.vmm_calls, 0u);
}

TEST(Defragment, TheProgramSeesMemoryOfCuMemAlloc) {
  const std::string script =
      "alloc a 100000\nask a\n" + give("a") + alloc("b", 1) + "ask b\n" + alloc("c", 5, "2") + "ask c\n";
  expect_same(run_plain(script), run_defragmented(script));
}

// A handle for another process cannot be had for mapped chunks; the next allocation is one for which it can.
TEST(Defragment, AfterTheFirstIpcHandleMemoryIsTheDriversAgain) {
  const std::string script = alloc("a", 4) + "ipc a\n" + alloc("b", 4) + fill("b", 2) + give("a") + alloc("c", 4);
  const Outcome ours = run_defragmented(script);
  EXPECT_TRUE(has(ours.output, "ipc: error 801"));
  EXPECT_EQ(total(ours, "insufficient") + total(ours, "exact"), 1u);
  EXPECT_TRUE(has_cause(ours.err, Cause::memory_not_shared, {{"what", "cuIpcGetMemHandle"}}));
  EXPECT_TRUE(has_cause(ours.err, Cause::defragmenting_ended));
}

TEST(Defragment, DuringACaptureTheDriverDecides) {
  const std::string script = alloc("a", 4) + fill("a", 1) + alloc("d", 2) + fill("d", 5) + "capture 2\n" +
                             alloc("b", 4) + "kernel 2 one a\nendcapture 2\n" + alloc("c", 4) + fill("c", 2) +
                             "kernel 0 two a c\n";
  const Outcome ours = run_defragmented(script);
  expect_same(run_plain(script), ours);
  EXPECT_EQ(total(ours, "insufficient"), 3u);
}

// A free during a capture does not synchronise; its chunks are used again only after one that may.
TEST(Defragment, AFreeDuringACaptureDoesNotEndIt) {
  const std::string script = alloc("a", 4) + fill("a", 1) + alloc("d", 4) + "capture 2\n" + give("d") +
                             "kernel 2 one a\nendcapture 2\n" + alloc("c", 4) + fill("c", 2);
  const Outcome ours = run_defragmented(script);
  EXPECT_FALSE(has(ours.output, "error"));
  EXPECT_EQ(total(ours, "waits"), 1u);
}

TEST(Defragment, SeveralDevicesAreLeftAlone) {
  const Variables two = {{"REPRISE_SIM_DEVICES", "2"}};
  const Outcome ours = run_defragmented(comb(8), two);
  expect_same(run_plain(comb(8), two), ours);
  EXPECT_TRUE(has(ours.err, "CUDA_VISIBLE_DEVICES"));
}

TEST(Defragment, ABudgetComesFirst) {
  const Outcome ours = well(run_managed(comb(8), "100%", {{"REPRISE_DEFRAGMENT", "1"}}));
  EXPECT_TRUE(has_cause(ours.err, Cause::defragment_not_alone));
}

}  // namespace
}  // namespace reprise::replay
