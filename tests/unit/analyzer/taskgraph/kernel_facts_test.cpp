// What facts about kernels make of a launch's accesses, and what they must not.
#include "analyzer/taskgraph/kernel_facts.h"

#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

constexpr uint32_t kRead = trace::kAccessRead;
constexpr uint32_t kWrite = trace::kAccessWrite;
constexpr uint32_t kBoth = kRead | kWrite;
constexpr uint32_t kUnchanged = kBoth | trace::kAccessUnchanged;
constexpr uint64_t kKernel = 0x77;

facts::SlotEvidence slot(uint32_t offset, uint64_t overwritten, uint64_t kept) {
  return {offset, overwritten, 0, 0, kept, 0, kept, 4096, 4096, 0, 0};
}

// Function 1 is kernel(const in @0, out @8), function 2 a kernel that nothing is known of.
class ApplyFacts : public testing::Test {
 protected:
  ApplyFacts() {
    facts::KernelFacts known;
    known.kernel = kKernel;
    known.name = "kernel";
    known.device = "a device";
    known.launches = known.equal = 1;
    known.first_day = known.last_day = "2026-11-23";
    known.slots = {slot(0, 0, 1), slot(8, 1, 0)};
    EXPECT_TRUE(store_.add(known).ok());
    trace_.info["device.name"] = "a device";
    trace_.functions.resize(2);
    for (uint32_t i = 0; i < 2; ++i) trace_.functions[i].id = i + 1;
    trace_.functions[0].identity = kKernel;
    trace_.functions[1].identity = 0x88;
    graph_.tensors.resize(3);
    for (uint32_t t = 1; t < 3; ++t) graph_.tensors[t].allocate_call = 0;  // 0 is persistent
  }
  ~ApplyFacts() override { std::filesystem::remove_all(store_.folder()); }

  void launch(uint32_t function, uint32_t in, uint32_t out) {
    GraphCall entry;
    entry.call.op = trace::OpKind::launch;
    entry.call.accesses = {{in, kBoth, 0, 0, 0}, {out, kBoth, 0, 0, 8}};
    graph_.calls.push_back(entry);
    trace::Op& op = launches_.emplace_back();
    op.record.function = function;
    for (int i = 0; i < 3; ++i) op.record.grid[i] = op.record.block[i] = 1;
    ops_.push_back(&op);
  }
  void apply() {
    KernelKnowledge knowledge(trace_, store_, true);
    apply_facts(knowledge, ops_, false, graph_);
  }
  void mark(plan::Safety safety) {
    KernelKnowledge knowledge(trace_, store_, true);
    mark_complete(knowledge, ops_, safety, graph_);
  }
  uint32_t mode(uint32_t call, uint32_t access) const { return graph_.calls[call].call.accesses[access].mode; }

  facts::Store store_{testing::TempDir() + "kernel_facts" + std::to_string(getpid())};
  trace::Trace trace_;
  TaskGraph graph_;
  std::deque<trace::Op> launches_;
  std::vector<const trace::Op*> ops_;
};

TEST_F(ApplyFacts, InputsAreUnchangedAndFreshOutputsWritten) {
  launch(1, 0, 1);
  apply();
  EXPECT_EQ(mode(0, 0), kUnchanged);
  EXPECT_EQ(mode(0, 1), kWrite);
  EXPECT_TRUE(graph_.calls[0].call.pure);
  EXPECT_TRUE(graph_.calls[0].known);
}

// Its bytes would be given up for a fact.
TEST_F(ApplyFacts, WhatWasTouchedBeforeOrLivesOnIsStillRead) {
  launch(1, 0, 1);
  launch(1, 2, 1);
  launch(1, 1, 0);
  apply();
  EXPECT_EQ(mode(1, 1), kBoth);
  EXPECT_EQ(mode(2, 1), kBoth);
}

// Two launches that only read a tensor keep their order: they might write it after all. Its copies stay valid.
TEST_F(ApplyFacts, UnchangedOperandsKeepTheirOrder) {
  for (plan::Tensor& tensor : graph_.tensors) tensor = {.size = 4096, .chunk_count = 1};
  launch(1, 0, 1);
  launch(1, 0, 2);
  apply();
  complete_task_graph(graph_);
  EXPECT_EQ(graph_.calls[0].unchanged, std::vector<uint32_t>{0});
  EXPECT_EQ(graph_.calls[0].writes, std::vector<uint32_t>{1});
  const auto ordered = [](const DataEdge& edge) { return edge.from == 0 && edge.to == 1 && edge.distance == 0; };
  EXPECT_TRUE(std::any_of(graph_.edges.begin(), graph_.edges.end(), ordered));
}

TEST_F(ApplyFacts, ATensorInTwoPlacesIsUsedInBothWays) {
  launch(1, 1, 1);
  apply();
  EXPECT_EQ(mode(0, 0), kBoth);
  EXPECT_EQ(mode(0, 1), kBoth);
}

TEST_F(ApplyFacts, ATensorThatIsReadInTwoPlacesIsUnchanged) {
  facts::KernelFacts reader;
  reader.kernel = 0x88;
  reader.name = "reader";
  reader.device = "a device";
  reader.launches = reader.equal = 1;
  reader.first_day = reader.last_day = "2026-11-23";
  reader.slots = {slot(0, 0, 1), slot(8, 0, 1)};
  ASSERT_TRUE(store_.add(reader).ok());
  launch(2, 1, 1);
  apply();
  EXPECT_EQ(mode(0, 0), kUnchanged);
  EXPECT_EQ(mode(0, 1), kUnchanged);
}

TEST_F(ApplyFacts, WhatIsNotKnownStaysAsItIs) {
  launch(2, 0, 1);
  launch(1, 0, 2);
  graph_.calls[1].foreign.push_back({1, true});
  launch(1, 0, 2);
  graph_.calls[2].call.accesses[0].parameter_offset = trace::kNoParameter;
  launch(1, 0, 2);
  graph_.calls[3].call.flags = trace::kOpOpaque;
  apply();
  for (const uint32_t call : {0u, 1u, 3u}) {
    EXPECT_EQ(mode(call, 0), kBoth) << call;
    EXPECT_FALSE(graph_.calls[call].call.pure) << call;
    EXPECT_FALSE(graph_.calls[call].known) << call;
  }
  EXPECT_EQ(mode(2, 0), kBoth) << "found through a table";
}

// A launch is audited whose very shape was: its kernel, grid, and the sizes of its operands; and no other kind of
// launch.
TEST_F(ApplyFacts, AuditedAreLaunchesOfAuditedShapes) {
  for (uint64_t t = 0; t < 3; ++t) graph_.tensors[t].size = 4096 + t;
  const uint32_t one[3] = {1, 1, 1};
  facts::KernelFacts audit;
  audit.kernel = kKernel;
  audit.name = "kernel";
  audit.device = "a device";
  audit.first_day = audit.last_day = "2026-11-23";
  audit.shapes = {{facts::shape_of(one, one, 0, {{0, 4096}, {8, 4097}}), facts::kAuditedLaunches}};
  ASSERT_TRUE(store_.add(audit).ok());
  launch(1, 0, 1);
  launch(1, 0, 2);  // other sizes
  launch(1, 1, 0);
  launch(2, 0, 1);  // another kernel
  launch(1, 0, 1);
  graph_.calls[4].foreign.push_back({1, true});
  launch(1, 0, 1);
  graph_.calls[5].call.flags = trace::kOpHostVisible;
  launch(1, 0, 1);
  graph_.calls[6].call.accesses.push_back({2, kBoth, 0, 0, trace::kNoParameter});
  launch(1, 0, 1);
  launches_[7].record.grid[0] = 2;
  launch(1, 0, 1);
  mark(plan::Safety::audited);
  for (uint32_t call = 0; call < graph_.calls.size(); ++call) {
    EXPECT_EQ(graph_.calls[call].call.audited, call == 0 || call == 8 ? kKernel : 0) << call;
  }
  audit.shapes.clear();
  audit.strayed = 1;
  ASSERT_TRUE(store_.add(audit).ok());
  graph_.calls[0].call.audited = 0;
  mark(plan::Safety::audited);
  EXPECT_EQ(graph_.calls[0].call.audited, 0u) << "one launch of the kernel went astray";
}

// Function 2 gets code: it reads through the word at 0 and writes through that at 8.
class ApplyProofs : public ApplyFacts {
 protected:
  ApplyProofs() { keep(code::Grade::closed); }

  void keep(code::Grade grade) {
    code::CodeFacts facts;
    facts.kernel = "kernel";
    facts.grade = grade;
    add_site(facts, code::How::read, 0);
    add_site(facts, code::How::write, 8);
    ASSERT_TRUE(code::CodeStore(store_.folder()).keep(0x88, facts).ok());
  }
  static void add_site(code::CodeFacts& facts, code::How how, uint32_t word) {
    code::Site site;
    site.how = how;
    site.choices = {{{code::BaseKind::parameter, word}}};
    facts.sites.emplace(site, "");
  }
  static facts::KernelFacts nothing_seen() {
    facts::KernelFacts seen;
    seen.kernel = 0x88;
    seen.name = "kernel";
    seen.device = "a device";
    seen.first_day = seen.last_day = "2026-11-29";
    return seen;
  }
  // The words of its parameters: addresses of allocations that the recording has.
  void launch_of_code(uint32_t in, uint32_t out, std::vector<uint64_t> words = {0x1000, 0x2000}) {
    launch(2, in, out);
    launches_.back().accesses = {{1, 0, 0, 0, kBoth}, {2, 0, 0, 8, kBoth}};
    launches_.back().parameters.resize(words.size() * 8);
    std::memcpy(launches_.back().parameters.data(), words.data(), words.size() * 8);
  }
  void apply(bool order_by_proof, bool use_code = true) {
    KernelKnowledge knowledge(trace_, store_, use_code);
    apply_facts(knowledge, ops_, order_by_proof, graph_);
  }
};

TEST_F(ApplyProofs, WhatCodeReadsIsUnchangedOrReadAlone) {
  launch_of_code(0, 1);
  apply(false);
  EXPECT_EQ(mode(0, 0), kUnchanged);
  EXPECT_EQ(mode(0, 1), kWrite) << "first in its life";
  EXPECT_TRUE(graph_.calls[0].call.pure);
  graph_.calls[0].call.accesses = {{0, kBoth, 0, 0, 0}, {1, kBoth, 0, 0, 8}};
  apply(true);
  EXPECT_EQ(mode(0, 0), kRead);
}

TEST_F(ApplyProofs, MarksLaunchesThatReachNothingElse) {
  launch_of_code(0, 1);
  mark(plan::Safety::proven);
  EXPECT_EQ(graph_.calls[0].call.audited, 0x88U);
  EXPECT_NE(graph_.calls[0].call.flags & plan::kCallProven, 0);
}

TEST_F(ApplyProofs, ProveNothingOfWhatIsNotClear) {
  launch_of_code(0, 1);
  launches_.back().record.header.flags = trace::kOpOpaque;
  launch_of_code(0, 1);
  launches_.back().accesses.back().parameter_offset = trace::kNoParameter;
  launch_of_code(0, 1);
  launches_.back().accesses.pop_back();  // an address that no access of the recording names
  trace::Allocate allocate{};
  allocate.record.address = 0x2000;
  allocate.record.size = 16;
  trace_.events.emplace_back(allocate);
  mark(plan::Safety::proven);
  for (uint32_t call = 0; call < 3; ++call) EXPECT_EQ(graph_.calls[call].call.audited, 0U) << call;
}

TEST_F(ApplyProofs, HiddenAndUnusedCodeProvesNothing) {
  launch_of_code(0, 1);
  apply(true, false);
  EXPECT_EQ(mode(0, 0), kBoth) << "code is not to be used";
  keep(code::Grade::hidden);
  apply(true);
  EXPECT_EQ(mode(0, 0), kBoth);
  EXPECT_FALSE(graph_.calls[0].call.pure);
}

// Memory that no parameter names: of the program, it is not proven; a module's variables are another matter.
TEST_F(ApplyProofs, OnlyWhatMayMoveHasToBeNamed) {
  trace::Allocate allocate{};
  allocate.record.allocation = 3;
  allocate.record.origin = trace::Origin::alloc;
  trace_.events.emplace_back(allocate);
  for (const uint64_t unnamed : {3u, 4u}) {
    launch_of_code(0, 1);
    launches_.back().accesses.push_back({unnamed, 0, 0, trace::kNoParameter, kBoth});
  }
  mark(plan::Safety::proven);
  EXPECT_EQ(graph_.calls[0].call.audited, 0U);
  EXPECT_EQ(graph_.calls[1].call.audited, 0x88U);
}

// ... and its order is that of the variables only where the code reaches them.
TEST_F(ApplyProofs, VariablesCountWhereCodeReachesThem) {
  for (const bool reaches : {false, true}) {
    code::CodeFacts facts;
    facts.kernel = "kernel";
    add_site(facts, code::How::read, 0);
    add_site(facts, code::How::write, 8);
    code::Site variable;
    variable.choices = {{{code::BaseKind::module, 1}}};
    if (reaches) facts.sites.emplace(variable, "");
    ASSERT_TRUE(code::CodeStore(store_.folder()).keep(0x88, facts).ok());
    launch_of_code(0, 1);
    launches_.back().accesses.push_back({4, 0, 1, trace::kNoParameter, kBoth});
    graph_.calls.back().foreign = {{1, true}};
    apply(true);
    EXPECT_EQ(graph_.calls.back().foreign.empty(), !reaches);
    EXPECT_EQ(graph_.calls.back().call.accesses[0].mode == kRead, !reaches);
  }
}

// A pointer that is made of one of two words in a way that may change it: neither is an address, both are null.
TEST_F(ApplyProofs, TheNullsThatAProofNeedsAreSaid) {
  code::CodeFacts facts;
  facts.kernel = "kernel";
  add_site(facts, code::How::read, 0);
  add_site(facts, code::How::write, 8);
  code::Site made;
  made.derived = true;
  made.choices = {{{code::BaseKind::parameter, 16}, {code::BaseKind::parameter, 24}}};
  facts.sites.emplace(made, "");
  ASSERT_TRUE(code::CodeStore(store_.folder()).keep(0x88, facts).ok());
  for (const uint64_t word : {0U, 1U}) launch_of_code(0, 1, {0x1000, 0x2000, 0, word, 0});
  mark(plan::Safety::proven);
  EXPECT_EQ(graph_.calls[0].call.audited, 0x88U);
  EXPECT_EQ(graph_.calls[0].call.null_words, (std::vector<uint32_t>{16, 24}));
  EXPECT_EQ(graph_.calls[1].call.audited, 0U);
}

// PyTorch's lpnorm_cleanup: a list of which each block uses one address, and what was on the caller's stack behind
// them.
TEST_F(ApplyProofs, WhatAListLeavesUnsetIsNoAddress) {
  constexpr uint32_t kPlaces = 64;
  code::CodeFacts facts;
  facts.kernel = "kernel";
  add_site(facts, code::How::read, 0);
  code::Site list;
  list.how = code::How::write;
  list.choices = {{{code::BaseKind::computed, facts.symbols.place_number({0, 0})}}};
  facts.sites.emplace(list, "");
  ASSERT_TRUE(code::CodeStore(store_.folder()).keep(0x88, facts).ok());
  trace::Allocate allocate{};
  allocate.record.allocation = 1;
  allocate.record.address = 0x1000;
  allocate.record.size = 0x2000;
  trace_.events.emplace_back(allocate);
  trace_.functions[1].parameters = {{0, 8}, {8, 8 * kPlaces}};
  trace_.functions[1].parameters_known = true;
  std::vector<uint64_t> words(1 + kPlaces);
  words[0] = 0x1000;
  words[1] = words[7] = 0x2000;
  for (const char* name : {"_ZN2at6native14lpnorm_cleanupIfEEvPKfNS0_19TensorListAddressesE", "another"}) {
    trace_.functions[1].name = name;
    launch_of_code(0, 1, words);
    mark(plan::Safety::proven);
    EXPECT_EQ(graph_.calls.back().call.audited, *name == '_' ? 0x88U : 0U) << name;
  }
}

// What the call of a library declares needs no code; and what launches showed is never wrong.
TEST_F(ApplyProofs, DeclaredLaunchesAreProven) {
  for (const uint32_t function : {2U, 1U}) {  // of which the second was seen to write the word at 8
    launch(function, 0, 1);
    launches_.back().record.header.flags = trace::kOpDeclared;
    launches_.back().accesses = {{1, 0, 0, 0, kRead}, {2, 0, 0, trace::kDeclaredParameter, kBoth}};
    graph_.calls.back().call.accesses = {{0, kRead, 0, 0, 0}, {1, kBoth, 0, 0, trace::kDeclaredParameter}};
  }
  mark(plan::Safety::proven);
  EXPECT_EQ(graph_.calls[0].call.audited, 0x88U);
  EXPECT_EQ(graph_.calls[1].call.audited, 0U);
  apply(true, false);
  EXPECT_EQ(mode(0, 0), kRead);
}

// Code says that the word at 0 is not written, and a launch was seen that wrote there.
TEST_F(ApplyProofs, WhatLaunchesContradictIsNotProven) {
  launch_of_code(0, 1);
  facts::KernelFacts seen = nothing_seen();
  seen.launches = 1;
  seen.slots = {slot(0, 1, 0), slot(8, 1, 0)};
  ASSERT_TRUE(store_.add(seen).ok());
  mark(plan::Safety::proven);
  EXPECT_EQ(graph_.calls[0].call.audited, 0U);
  seen.slots.clear();
  seen.strayed = 1;
  ASSERT_TRUE(store_.add(seen).ok());
  mark(plan::Safety::audited);
  EXPECT_EQ(graph_.calls[0].call.audited, 0U);
}

// It looks pure, and made other bytes when it was launched again.
TEST_F(ApplyProofs, WhatWasSeenUnequalIsNotPure) {
  launch_of_code(0, 1);
  facts::KernelFacts seen = nothing_seen();
  seen.unequal = 1;
  ASSERT_TRUE(store_.add(seen).ok());
  apply(true);
  EXPECT_EQ(mode(0, 0), kRead);
  EXPECT_FALSE(graph_.calls[0].call.pure);
}

TEST_F(ApplyFacts, FactsOfAnotherDeviceSayNothing) {
  trace_.info["device.name"] = "another device";
  launch(1, 0, 1);
  apply();
  EXPECT_EQ(mode(0, 0), kBoth);
  EXPECT_FALSE(graph_.calls[0].known);
}

}  // namespace
}  // namespace reprise::analyzer
