#include "analyzer/code/listing/listing.h"

#include "analyzer/code/facts.h"
#include "tests/support/test.h"

namespace reprise::code {
namespace {

constexpr char kHead[] = "\t.target\tsm_90\n\t.section\t.text.k,\"ax\",@progbits\nk:\n.text.k:\n";

std::string listing_of(const std::vector<std::string>& lines) {
  std::string text = kHead;
  uint32_t at = 0;
  for (const std::string& line : lines) {
    char offset[32];
    std::snprintf(offset, sizeof offset, "        /*%04x*/  ", at);
    text += line.ends_with(":") ? line + "\n" : offset + line + " ;\n";
    if (!line.ends_with(":")) at += 16;
  }
  return text;
}

images::KernelCode kernel() {
  return {.name = "k",
          .symbol = 1,
          .parameters_at = 0x210,
          .parameters = {{0, 8}, {8, 8}, {16, 4}},
          .parameters_known = true};
}

CodeFacts facts_of(const std::vector<std::string>& lines) {
  const Listing listing = good(Listing::read(listing_of(lines)));
  images::CodeImage image;
  image.addresses = {{0x10, "variable"}};
  return analyse(listing, image, kernel());
}

// "reads 0; writes 8": parameter words only.
std::string uses(const CodeFacts& facts) {
  if (!facts.known()) return "unknown: " + *facts.unknown;
  std::string text = name_of(facts.grade);
  for (const auto& [base, use] : facts.uses) {
    if (base.kind != BaseKind::parameter || !use.any()) continue;
    text += " " + std::to_string(base.key) + (use.atomic ? "a" : "") + (use.read ? "r" : "") + (use.written ? "w" : "");
  }
  return text;
}

const std::vector<std::string> kLoadAndStore = {"LDC.64 R2, c[0x0][0x210]",       "ULDC.64 UR4, c[0x0][0x208]",
                                                "LDG.E R0, desc[UR4][R2.64+0x4]", "LDC.64 R4, c[0x0][0x218]",
                                                "STG.E desc[UR4][R4.64], R0",     "EXIT"};

std::vector<std::string> with(std::vector<std::string> lines, size_t at, const std::string& line) {
  lines[at] = line;
  return lines;
}

TEST(Operand, FormsAreRead) {
  EXPECT_EQ(read_operand("R254").reg, 254);
  EXPECT_EQ(read_operand("RZ").reg, kZero);
  EXPECT_EQ(read_operand("UR4").reg, kUniform + 4);
  EXPECT_EQ(read_operand("B6").reg, kBarrier + 6);
  EXPECT_EQ(read_operand("-R3.reuse").sign, Sign::negative);
  EXPECT_EQ(read_operand("|R3|").sign, Sign::part);
  EXPECT_EQ(read_operand("R3.H0_H0").sign, Sign::part);
  EXPECT_EQ(read_operand("~R3").sign, Sign::inverted);
  EXPECT_EQ(read_operand("!UP2").predicate, kUniformPredicate + 2);
  EXPECT_TRUE(read_operand("!UP2").negated);
  EXPECT_EQ(read_operand("PT").predicate, kTrue);
  const CodeOperand constant = read_operand("c[0x0][R2+0x210]");
  EXPECT_TRUE(constant.is(OperandKind::constant));
  EXPECT_EQ(constant.reg, 2);
  EXPECT_EQ(constant.value, 0x210U);
  const CodeOperand address = read_operand("desc[UR6][R2.64+UR4+-0x8]");
  EXPECT_EQ(address.form, AddressForm::wide);
  EXPECT_EQ(address.reg, 2);
  EXPECT_EQ(address.second, kUniform + 4);
  EXPECT_EQ(address.value, 0xfffffff8U);
  EXPECT_EQ(read_operand("[R3.X4+0x10]").form, AddressForm::scaled);
  EXPECT_EQ(read_operand("-0x10").value, 0xfffffff0U);
  EXPECT_TRUE(read_operand("1.5e-08").is(OperandKind::number));
  EXPECT_TRUE(read_operand("+INF").is(OperandKind::number));
  EXPECT_EQ(read_operand("32@hi((f + .L_x_5@srel))").name, "(f + .L_x_5@srel)");
}

TEST(Operand, WhatHasNoKnownFormIsUnknown) {
  for (const char* text : {"",           "R255",
                           "R",          "UR63",
                           "B16",        "P8",
                           "P",          "c[0x0]",
                           "c[0x0][",    "c[0x44][0x0]",
                           "[R2+R3+R4]", "[R2",
                           "[R2.U16]x",  "c[(symbol)][0x10]",
                           "R2.",        "-|R2",
                           "0x",         "0x1g",
                           "1.5x",       "QUX",
                           "32@lo(x",    "desc[UR4"}) {
    EXPECT_TRUE(read_operand(text).is(OperandKind::unknown)) << text;
  }
}

TEST(Listing, InstructionsLabelsAndTargets) {
  const Listing listing = good(
      Listing::read(listing_of({"@!P0 BRA `(.L_x_1)", "CALL.REL.NOINC R10 `(k)",
                                "BRX R2 -0x90 (*\"BRANCH_TARGETS .L_x_1,k\"*)", ".L_x_1:", "F2F.F64.F32 R2, R4"})));
  ASSERT_EQ(listing.code().size(), 5U);
  EXPECT_EQ(listing.code()[0].guard, (Guard{0, true}));
  EXPECT_EQ(listing.code()[0].targets, std::vector<std::string_view>{".L_x_1"});
  EXPECT_EQ(listing.code()[1].operands.size(), 1U);
  EXPECT_EQ(listing.code()[2].targets.size(), 2U);
  EXPECT_EQ(listing.code()[2].operands[0].reg, 2);
  EXPECT_EQ(listing.label(".L_x_1"), 3U);
  EXPECT_EQ(listing.code()[3].first_type, Modifier::F64);
  EXPECT_EQ(listing.code()[4].row.effect, Effect::beyond);
  EXPECT_EQ(listing.architecture(), 90U);
}

TEST(Listing, OfNotesThatOfSpillsAloneIsNoOperand) {
  const Listing listing = good(
      Listing::read(listing_of({"STL [R1+0xfc], R12     (*\"SpillRefill\"*)", "STL [R1+0xfc], R12 (*\"ANOTHER\"*)"})));
  EXPECT_EQ(listing.code()[0].operands.size(), 2U);
  EXPECT_EQ(listing.code()[0].operands[1].reg, 12);
  EXPECT_TRUE(listing.code()[1].operands[1].is(OperandKind::unknown));
}

TEST(Listing, IrregularTextIsAnError) {
  const std::string head = kHead;
  for (const char* lines :
       {"/*0008*/ EXIT ;\n", "/*0000*/ EXIT ;\n/*0000*/ EXIT ;\n", "/*0000*/ @R2 EXIT ;\n", "k:\nk:\n"}) {
    EXPECT_FALSE(Listing::read(head + lines).ok()) << lines;
  }
}

TEST(Facts, OfALoadAndAStore) {
  const CodeFacts facts = facts_of(kLoadAndStore);
  EXPECT_EQ(uses(facts), "closed 0r 8w");
  EXPECT_TRUE(facts.repeats());
}

TEST(Facts, WhatIsNotOnTheListIsUnknown) {
  EXPECT_TRUE(begins(uses(facts_of(with(kLoadAndStore, 2, "LDQ.E R0, desc[UR4][R2.64]"))),
                     "unknown: an opcode that is not known"));
  EXPECT_TRUE(begins(uses(facts_of(with(kLoadAndStore, 2, "LDG.E.NEW R0, desc[UR4][R2.64]"))),
                     "unknown: a modifier that is not known"));
  EXPECT_TRUE(begins(uses(facts_of(with(kLoadAndStore, 2, "LDG R0, [R2]"))), "unknown: an address of 32 bits"));
  EXPECT_TRUE(begins(uses(facts_of(with(kLoadAndStore, 2, "LDG.E R0, desc[UR4][R2.X4]"))),
                     "unknown: an address of an unknown form"));
  EXPECT_TRUE(begins(uses(facts_of(with(kLoadAndStore, 0, "LDC.64 R2, c[0x7][0x210]"))), "unknown: constant bank 7"));
  EXPECT_TRUE(begins(uses(facts_of(with(kLoadAndStore, 0, "LDC.64 R2, c[0x4][0x18]"))), "unknown: c[0x4][0x18]"));
  EXPECT_TRUE(begins(uses(facts_of(with(kLoadAndStore, 0, "NOP"))), "unknown: an address that nothing defines"));
  EXPECT_TRUE(begins(uses(facts_of(with(kLoadAndStore, 5, "NOP"))), "unknown: control runs past the end"));
  EXPECT_TRUE(
      begins(uses(facts_of(with(kLoadAndStore, 5, "RET.REL.NODEC R20 `(k)"))), "unknown: a return without a call"));
  EXPECT_TRUE(
      begins(uses(facts_of(with(kLoadAndStore, 5, "BRX R2 -0x90"))), "unknown: a jump whose targets are not listed"));
}

TEST(Facts, OtherArchitecturesAreUnknown) {
  std::string text = listing_of(kLoadAndStore);
  text.replace(text.find("sm_90"), 5, "sm_100");
  EXPECT_TRUE(begins(uses(analyse(good(Listing::read(text)), {}, kernel())), "unknown: code of sm_100"));
}

TEST(Facts, AnAddressThatWasLoadedIsHidden) {
  EXPECT_EQ(uses(facts_of(with(kLoadAndStore, 3, "LDG.E.64 R4, desc[UR4][R2.64]"))), "hidden 0r");
}

TEST(Facts, BothArmsOfAPredicateCount) {
  std::vector<std::string> lines = kLoadAndStore;
  lines.insert(lines.begin() + 2, {"ISETP.NE.AND P0, PT, R9, RZ, PT", "@P0 LDC.64 R2, c[0x0][0x218]"});
  EXPECT_EQ(uses(facts_of(lines)), "closed 0r 8rw");
}

// The predicate is set anew between the move and the load: what was kept apart is one again.
TEST(Facts, APredicateThatChangesIsForgotten) {
  std::vector<std::string> lines = kLoadAndStore;
  lines.insert(lines.begin() + 2, {"ISETP.NE.AND P0, PT, R9, RZ, PT", "@P0 LDC.64 R2, c[0x0][0x218]"});
  lines[4] = "@!P0 LDG.E R0, desc[UR4][R2.64]";
  EXPECT_EQ(uses(facts_of(lines)), "closed 0r 8w");
  lines.insert(lines.begin() + 4, "ISETP.EQ.AND P0, PT, R9, RZ, PT");
  EXPECT_EQ(uses(facts_of(lines)), "closed 0r 8rw");
}

// Any instruction may set a predicate, not only comparisons: of registers that a warp gets, whether it got them.
TEST(Facts, PredicatesOfOtherInstructionsAreForgottenToo) {
  EXPECT_EQ(uses(facts_of({"ULDC.64 UR4, c[0x0][0x210]", "@UP0 ULDC.64 UR4, c[0x0][0x218]",
                           "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8", "@UP0 LDG.E R0, desc[UR8][UR4]", "EXIT"})),
            "closed 0r 8r");
}

// A uniform register is one for the whole warp: threads whose predicate is false see it changed.
TEST(Facts, AUniformRegisterIsChangedForAllThreads) {
  EXPECT_EQ(uses(facts_of({"ULDC.64 UR6, c[0x0][0x210]", "LDC.64 R2, c[0x0][0x218]", "ISETP.NE.AND P0, PT, R9, RZ, PT",
                           "@P0 R2UR UR6, R2", "@P0 R2UR UR7, R3", "@!P0 LDG.E R0, desc[UR4][UR6]", "EXIT"})),
            "closed 0r 8r");
}

TEST(Facts, TheLeastOfTwoIsEither) {
  EXPECT_EQ(uses(facts_of({"LDC.64 R2, c[0x0][0x210]", "LDC.64 R4, c[0x0][0x218]", "IMNMX.U32 R2, R2, R4, PT",
                           "IMNMX.U32 R3, R3, R5, PT", "LDG.E R0, desc[UR4][R2.64]", "EXIT"})),
            "closed 0r 8r");
}

// What an atomic of doubles returns overwrites two registers: the upper half of the old address is gone, too.
TEST(Facts, AnAtomicOfDoublesReturnsTwoRegisters) {
  EXPECT_EQ(uses(facts_of({"LDC.64 R2, c[0x0][0x210]", "LDC.64 R4, c[0x0][0x218]", "MOV R6, R4",
                           "ATOMG.E.ADD.F64.RN.STRONG.GPU PT, R4, desc[UR4][R2.64], R8", "MOV R7, R5",
                           "STG.E desc[UR4][R6.64], R0", "EXIT"})),
            "hidden 0arw");
}

// An address made of numbers alone leads nowhere that is known.
TEST(Facts, AnAddressWithoutAWordIsHidden) {
  EXPECT_EQ(uses(facts_of({"S2R R2, SR_TID.X", "MOV R3, 0x7f00", "LDG.E R0, desc[UR4][R2.64]", "EXIT"})), "hidden");
}

}  // namespace
}  // namespace reprise::code
