// The interpreter of machine code: instructions one by one, and kernels of habits.cu held against what the analysis
// claims of them, for builds that are kept.
#include "analyzer/code/listing/listing.h"
#include "tests/code/kept.h"
#include "tests/code/trial.h"

namespace reprise::sass {
namespace {

std::string listing_of(const std::vector<std::string>& lines) {
  std::string text = "\t.target\tsm_90\n\t.section\t.text.k,\"ax\",@progbits\nk:\n.text.k:\n";
  uint32_t at = 0;
  for (const std::string& line : lines) {
    char offset[32];
    std::snprintf(offset, sizeof offset, "        /*%04x*/  ", at);
    text += line.ends_with(":") ? line + "\n" : offset + line + " ;\n";
    if (!line.ends_with(":")) at += 16;
  }
  return text;
}

// What each thread has in R0 in the end, which it stores for us.
std::vector<uint32_t> run_lines(std::vector<std::string> lines, uint32_t threads = 1) {
  const std::vector<std::string> begin = {"S2R R200, SR_TID.X", "LDC.64 R202, c[0x0][0x210]",
                                          "IMAD.WIDE.U32 R202, R200, 0x4, R202"};
  lines.insert(lines.begin(), begin.begin(), begin.end());
  lines.insert(lines.end(), {"STG.E desc[UR4][R202.64], R0", "EXIT"});
  const code::Listing listing = good(code::Listing::read(listing_of(lines)));
  const std::vector<Operation> code = decode_all(listing);
  World world(1, 1);
  const uint64_t base = world.object(world.add(Filling::zeros)).base;
  Program program;
  program.listing = &listing;
  program.code = &code;
  program.shared_bytes = 1024;
  program.banks[0].resize(0x300);
  std::memcpy(program.banks[0].data() + 0x210, &base, 8);
  Machine machine{program, world, {{1, 1, 1}, {threads, 1, 1}}, std::mt19937_64(7), 10000, 0, Stop::none, ""};
  run(machine);
  EXPECT_EQ(machine.stopped, Stop::none) << machine.why;
  std::vector<uint32_t> results(threads);
  world.read(base, results.data(), 4 * threads);
  return results;
}

uint32_t run_one(const std::vector<std::string>& lines) { return run_lines(lines)[0]; }

struct Case {
  std::vector<std::string> lines;
  uint32_t result;
};

TEST(Interpreter, InstructionsGiveWhatTheyShould) {
  const std::vector<Case> cases = {
      // -0 carries, as ~0 + 1 does.
      {{"IADD3 R1, P0, RZ, -RZ, RZ", "IADD3.X R0, RZ, RZ, RZ, P0, !PT"}, 1},
      {{"MOV R1, 0x1", "IADD3 R1, P0, RZ, -R1, RZ", "IADD3.X R0, RZ, RZ, RZ, P0, !PT"}, 0},
      {{"MOV R1, 0xffffffff", "IADD3 R2, P0, P1, R1, R1, R1", "IADD3.X R0, RZ, RZ, RZ, P0, P1"}, 2},
      // The upper half of a product and a pair.
      {{"MOV R2, 0xffffffff", "MOV R3, 0x5", "MOV R4, 0x2", "IMAD.HI.U32 R0, R4, 0x80000000, R2"}, 6},
      {{"MOV R1, 0xfffffffe", "IMAD.WIDE R2, R1, 0x3, RZ", "MOV R0, R3"}, 0xffffffff},
      {{"MOV R1, 0xfffffffe", "IMAD.WIDE.U32 R2, R1, 0x3, RZ", "MOV R0, R3"}, 2},
      {{"MOV R1, 0x7", "IMAD R0, R1, -0x3, R1"}, 0xfffffff2},
      {{"MOV R1, 0xc0000000", "MOV R2, 0x3", "LEA R0, P0, R1, R2, 0x2", "LEA.HI.X R0, R1, R2, R2, 0x2, P0"}, 18},
      {{"MOV R1, 0x80000000", "LEA.HI.SX32 R0, R1, RZ, 0x4"}, 0xfffffff8},
      {{"MOV R1, 0xf0f0", "LOP3.LUT R0, R1, 0xff, RZ, 0xc0, !PT"}, 0xf0},
      {{"MOV R1, 0x80000001", "SHF.R.S32.HI R0, RZ, 0x4, R1"}, 0xf8000000},
      {{"MOV R1, 0x80000001", "SHF.L.U32 R0, R1, 0x20, RZ"}, 0},
      {{"MOV R1, 0x80000001", "MOV R2, 0x3", "SHF.L.U64.HI R0, R1, 0x1, R2"}, 7},
      {{"MOV R1, 0x10", "MOV R2, 0x1", "SHF.R.U64 R0, R1, 0x4, R2"}, 0x10000001},
      {{"MOV R1, 0x11223344", "MOV R2, 0x55667788", "PRMT R0, R1, 0xb254, R2"}, 0x00227788},
      {{"MOV R1, 0xff", "SGXT R0, R1, 0x8"}, 0xffffffff},
      {{"MOV R1, 0x100", "FLO.U32 R0, R1"}, 8},
      {{"MOV R1, 0x5", "ISETP.GE.U32.AND P0, PT, R1, 0x6, PT", "ISETP.GE.AND.EX P0, PT, RZ, RZ, PT, P0",
        "SEL R0, R1, 0x9, P0"},
       9},
      {{"HFMA2.MMA R0, -RZ, RZ, 1.875, 0"}, 0x3f800000},
      {{"MOV R1, 0x3f800000", "FFMA R0, R1, 2, R1"}, 0x40400000},
      {{"MOV R1, 0x7", "I2F.U32.RP R0, R1"}, 0x40e00000},
      {{"MOV R1, 0x40f00000", "F2I.FTZ.U32.TRUNC.NTZ R0, R1"}, 7},
      {{"UMOV UR4, 0x5", "R2UR UR5, R200", "UIADD3 UR4, UR4, 0x1, UR5", "MOV R0, UR4"}, 6},
      {{"ISETP.NE.AND P1, PT, RZ, RZ, PT", "MOV R0, 0x1", "@P1 MOV R0, 0x2"}, 1},
  };
  for (const Case& one : cases) EXPECT_EQ(run_one(one.lines), one.result) << one.lines.back();
}

TEST(Interpreter, ThreadsThatDivergeMeetAgain) {
  const auto results = run_lines({"MOV R0, RZ", "ISETP.GT.U32.AND P0, PT, R200, 0x3, PT", "BSSY B0, `(.L_2)",
                                  "@P0 BRA `(.L_1)", "IADD3 R0, R0, 0x64, RZ", ".L_1:", "BSYNC B0",
                                  ".L_2:", "VOTE.ANY R1, PT, PT", "POPC R1, R1", "IADD3 R0, R0, R1, RZ"},
                                 32);
  EXPECT_EQ(results[3], 132U);
  EXPECT_EQ(results[4], 32U);
}

TEST(Interpreter, ShufflesReadOtherThreads) {
  const auto results = run_lines({"SHFL.BFLY PT, R0, R200, 0x1, 0x1f"}, 32);
  EXPECT_EQ(results[6], 7U);
  EXPECT_EQ(run_lines({"SHFL.UP PT, R0, R200, 0x2, RZ"}, 32)[1], 1U);
  EXPECT_EQ(run_lines({"SHFL.DOWN PT, R0, R200, 0x2, 0x1f"}, 32)[29], 31U);
}

// The other warp's store is seen behind the barrier, in either order.
TEST(Interpreter, BarriersHoldBlocks) {
  const auto results = run_lines({"SHF.L.U32 R1, R200, 0x2, RZ", "STS [R1], R200", "BAR.SYNC.DEFER_BLOCKING 0x0",
                                  "LOP3.LUT R1, R1, 0x80, RZ, 0x3c, !PT", "LDS R0, [R1]"},
                                 64);
  EXPECT_EQ(results[0], 32U);
  EXPECT_EQ(results[63], 31U);
}

TEST(Interpreter, CallsComeBack) {
  EXPECT_EQ(run_one({"MOV R20, 0x60", "MOV R21, 0x0", "CALL.REL.NOINC `(.L_1)", "BRA `(.L_2)", ".L_1:", "MOV R0, 0x3",
                     "RET.REL.NODEC R20 `(k)", ".L_2:", "IADD3 R0, R0, 0x1, RZ"}),
            4U);
}

TEST(Interpreter, WhatIsNotKnownEndsTheRun) {
  for (const char* line : {"LDQ R0, [R1]", "IADD3.NEW R0, R1, R1, RZ", "IADD3 R0, R1, what, RZ"}) {
    const code::Listing listing = good(code::Listing::read(listing_of({line, "EXIT"})));
    const std::vector<Operation> code = decode_all(listing);
    World world(1, 1);
    Program program;
    program.listing = &listing;
    program.code = &code;
    Machine machine{program, world, {}, std::mt19937_64(1), 100, 0, Stop::none, ""};
    run(machine);
    EXPECT_EQ(machine.stopped, Stop::not_interpreted) << line;
  }
}

struct Sums {
  int interpreted = 0;
  uint32_t compared = 0;
  uint32_t unclaimed = 0;
  uint32_t followed = 0;
  uint32_t repeated = 0;
  size_t wrong = 0;
};

// All kernels of a kept build.
Sums interpret(const std::string& build, const Wishes& wishes) {
  const auto truths = code::read_truth(read_file(std::string(REPRISE_CODE_TESTS) + "/habits.cu"));
  const std::string cubin = code::kept(build + ".cubin");
  const auto image = good(images::parse_code(cubin));
  const code::Listing listing = good(code::Listing::read(code::kept(build + ".text")));
  const Subject subject{cubin, image, listing, decode_all(listing)};
  Sums sums;
  for (const images::KernelCode& kernel : image.kernels) {
    const auto truth = truths.find(kernel.name);
    if (truth == truths.end()) continue;
    const Verdict verdict = try_kernel(subject, kernel, wishes, &truth->second);
    sums.interpreted += verdict.ended > 0 ? 1 : 0;
    sums.compared += verdict.compared;
    sums.unclaimed += verdict.unclaimed;
    sums.followed += verdict.followed;
    sums.repeated += verdict.repeated;
    sums.wrong += verdict.wrong.size();
    if (wishes.fault != 0) continue;
    for (const std::string& wrong : verdict.wrong) ADD_FAILURE() << verdict.kernel << ": " << wrong;
    for (const std::string& wrong : verdict.against_truth) ADD_FAILURE() << verdict.kernel << ": the truth: " << wrong;
  }
  return sums;
}

class Interpreted : public testing::TestWithParam<const char*> {};

TEST_P(Interpreted, KernelsTouchOnlyWhatIsClaimed) {
  const Sums sums = interpret(GetParam(), {.launches = 2, .attempts = 30});
  EXPECT_GE(sums.interpreted, 72);
  EXPECT_GE(sums.compared, 100U);
  EXPECT_GE(sums.unclaimed, 30U);
  EXPECT_GE(sums.followed, 20U);
  EXPECT_GE(sums.repeated, 45U);
}

INSTANTIATE_TEST_SUITE_P(Builds, Interpreted, testing::Values("sm_75-O3", "sm_80-rdc", "sm_90-O3", "sm_90-ptxas-O0"));

// 1, 2: a word is taken from what is claimed to be read or written. 3: no claim counts as the claim that nothing is
// touched. 4: a byte differs the second time. 5: every kernel is claimed to repeat.
TEST(Interpreted, FaultsInTheComparisonAreNoticed) {
  for (const int fault : {1, 2, 3, 4, 5}) {
    EXPECT_GE(interpret("sm_90-O3", {.launches = 3, .attempts = 6, .fault = fault}).wrong, 2U) << fault;
  }
}

}  // namespace
}  // namespace reprise::sass
