// The plan file: what is written is read back, anything else is refused.
#include "analyzer/plan/plan.h"

#include "analyzer/plan/codec.h"
#include "analyzer/plan/enforced.h"
#include "preload/trace/signature.h"
#include "tests/support/test.h"

namespace reprise::plan {
namespace {

// A persistent tensor 0, away at the start, and a transient tensor 1; one op reads 0 and makes 1.
Plan small_plan() {
  Plan plan;
  plan.program = "./train --steps 3";
  plan.policy = "disco";
  plan.chunk_bytes = 2 << 20;
  plan.budget_bytes = 8 << 20;
  plan.reserved_bytes = 2 << 20;
  plan.chunk_count = 3;
  plan.slab_bytes = 1 << 20;
  plan.reload_bytes = plan.offload_bytes = 3 << 20;
  plan.tensors.resize(3);
  plan.tensors[0] = {.size = 3 << 20, .recorded_allocation = 7, .chunk_count = 2, .home = 0};
  plan.tensors[1] = {
      .size = 1 << 20, .recorded_allocation = 9, .chunk_count = 1, .allocate_call = 0, .free_call = 2, .home = 1};
  plan.tensors[2] = {.size = 100, .recorded_allocation = 10, .allocate_call = 3, .free_call = 4, .slab_offset = 512};
  plan.placements = {{{0, 2}}, {{1}}};
  plan.calls.resize(5);
  plan.calls[0] = {.kind = CallKind::allocate, .tensor = 1};
  plan.calls[1] = {.kind = CallKind::op,
                   .op = trace::OpKind::launch,
                   .vertex = 1,
                   .accesses = {{.tensor = 0, .mode = 1}, {.tensor = 1, .mode = 3, .offset = 16, .size = 32}},
                   .name = "kernel",
                   .duration_ns = 1000};
  plan.calls[2] = {.kind = CallKind::free, .tensor = 1, .vertex = 2};
  plan.calls[3] = {.kind = CallKind::allocate, .tensor = 2};
  plan.calls[4] = {.kind = CallKind::free, .tensor = 2, .vertex = 4};
  plan.vertices.resize(5);
  plan.vertices[0] = {.kind = VertexKind::reload,
                      .tensor = 0,
                      .predecessors = {{.vertex = 3, .kind = EdgeKind::data, .distance = 1}},
                      .acquires = {{.tensor = 0, .placement = 0}}};
  plan.vertices[1] = {
      .kind = VertexKind::op, .call = 1, .predecessors = {{.vertex = 0}}, .acquires = {{.tensor = 1, .placement = 1}}};
  plan.vertices[2] = {.kind = VertexKind::release, .call = 2, .tensor = 1};
  plan.vertices[3] = {.kind = VertexKind::offload, .tensor = 0, .predecessors = {{.vertex = 1}}};
  plan.vertices[4] = {.kind = VertexKind::release, .call = 4, .tensor = 2};
  plan.order = {0, 1, 3, 2, 4};
  return plan;
}

// The same with the transient tensors and their calls on a second device.
Plan two_devices() {
  Plan plan = small_plan();
  plan.device_chunks = {2, 1};
  plan.placements = {{{0, 1}}, {{2}}};
  plan.tensors[1].device = plan.tensors[2].device = plan.calls[1].device = 1;
  return plan;
}

std::string temporary_path(const char* name) {
  return (std::filesystem::temp_directory_path() / (std::string(name) + std::to_string(::getpid()))).string();
}

TEST(Plan, KeepsEveryFieldThroughItsBinaryForm) {
  const Plan plan = small_plan();
  ASSERT_TRUE(check_structure(plan).ok()) << check_structure(plan).message();
  const std::string bytes = serialize(plan);
  const auto again = good(deserialize(bytes));
  EXPECT_EQ(serialize(again), bytes);
  EXPECT_EQ(to_text(again), to_text(plan));
  EXPECT_EQ(again.calls[1].accesses[1].size, 32u);
  EXPECT_EQ(again.vertices[0].predecessors[0].distance, 1);
}

TEST(Plan, SaysWhichLinkItWasMadeFor) {
  Plan plan = small_plan();
  plan.link = {"h200", false, 55'000'000'000, 50'000'000'000, 9'000, 70'000};
  EXPECT_EQ(good(deserialize(serialize(plan))).link, plan.link);
  EXPECT_TRUE(has(to_text(plan), "link machine=h200 assumed=0 h2d=55000000000 d2h=50000000000"));
}

// What its iterations do not use of a larger budget; where that holds everything, no plan is of use.
TEST(Plan, SaysWhereTheBudgetIsLarger) {
  Plan plan = small_plan();
  plan.budget_bytes = uint64_t{16} << 20;
  plan.peak_bytes = uint64_t{20} << 20;
  plan.chunk_bytes = uint64_t{2} << 20;
  EXPECT_EQ(made_for_less(plan, uint64_t{14} << 20), "");
  EXPECT_EQ(made_for_less(plan, uint64_t{16} << 20), "");
  EXPECT_EQ(made_for_less(plan, (uint64_t{18} << 20) - 1), "") << "not a chunk more";
  EXPECT_EQ(made_for_less(plan, uint64_t{18} << 20),
            "was made for a budget of 16.0 MiB, and its iterations use no more of the 18.0 MiB that they may; a plan "
            "for that may move less");
  EXPECT_EQ(made_for_less(plan, uint64_t{20} << 20),
            "was made for a budget of 16.0 MiB, and its iterations use no more of the 20.0 MiB that they may; these "
            "hold all that the program has, so without a plan nothing would have to move");
}

TEST(Plan, SaysWhichSafetyItWasMadeFor) {
  for (const Safety safety : {Safety::strict, Safety::proven, Safety::audited, Safety::trusted}) {
    Plan plan = small_plan();
    plan.safety = safety;
    EXPECT_EQ(good(deserialize(serialize(plan))).safety, safety);
    EXPECT_TRUE(has(to_text(plan), std::string(" safety=") + name_of(safety) + " "));
    for (const Safety run : {Safety::strict, Safety::proven, Safety::audited, Safety::trusted}) {
      const std::string other = made_for_another(plan, run);
      EXPECT_EQ(other.empty(), run == safety) << other;
      if (!other.empty()) {
        EXPECT_TRUE(has(other, std::string("--safety ") + name_of(safety) + " and is followed with " + name_of(run)));
      }
    }
  }
  Plan unknown = small_plan();
  unknown.safety = static_cast<Safety>(4);
  EXPECT_TRUE(has(check_structure(unknown).message(), "no known safety"));
}

// What a name has in it breaks no line of the text form.
TEST(Plan, ANameOfTwoLinesStaysInItsLine) {
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  Plan plan = small_plan();
  plan.calls[1].name = plan.program = plan.policy = "two\nlines\x1b[31m";
  EXPECT_EQ(lines(to_text(plan)), lines(to_text(small_plan()))) << to_text(plan);
  EXPECT_EQ(to_text(plan).find('\x1b'), std::string::npos);
}

TEST(Plan, SeveralDevicesShareOneNumberOfChunks) {
  const Plan plan = two_devices();
  ASSERT_TRUE(check_structure(plan).ok()) << check_structure(plan).message();
  EXPECT_EQ(device_count(plan), 2u);
  EXPECT_EQ(device_count(small_plan()), 1u);
  EXPECT_EQ(to_text(good(deserialize(serialize(plan)))), to_text(plan));
  EXPECT_TRUE(has(to_text(plan), "devices 2, their chunks: 2 1\n"));
  EXPECT_TRUE(has(to_text(plan), "home=1 device=1\n"));
  EXPECT_FALSE(has(to_text(small_plan()), "device"));
}

TEST(Plan, StructureCheckKeepsDevicesApart) {
  struct Case {
    const char* says;
    std::function<void(Plan&)> breaks;
  };
  const Case cases[] = {
      {"number of devices", [](Plan& p) { p.device_chunks = {3}; }},
      {"a device's chunks do not fit",
       [](Plan& p) {
         p.device_chunks = {0, 4};
       }},
      {"do not add up",
       [](Plan& p) {
         p.device_chunks = {2, 2};
       }},
      {"tensor 0 is on a device", [](Plan& p) { p.tensors[0].device = 2; }},
      {"tensor 0 has its home on another", [](Plan& p) { p.tensors[0].device = 1; }},
      {"call 1 runs on a device", [](Plan& p) { p.calls[1].device = 2; }},
      {"vertex 1 acquires chunks of another",
       [](Plan& p) {
         p.placements.push_back({{0}});
         p.vertices[1].acquires[0].placement = 2;
       }},
  };
  for (const Case& item : cases) {
    Plan plan = two_devices();
    item.breaks(plan);
    EXPECT_TRUE(has(check_structure(plan).message(), item.says)) << " | " << item.says;
  }
}

TEST(Plan, RefusesEveryFlippedByte) {
  const std::string bytes = serialize(small_plan());
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const char flip : {char{1}, char(-128), char(-1)}) {
      std::string broken = bytes;
      broken[i] = static_cast<char>(broken[i] ^ flip);
      EXPECT_FALSE(deserialize(broken).ok()) << "byte " << i;
    }
  }
}

TEST(Plan, RefusesEveryPrefixAndAnyTail) {
  const std::string bytes = serialize(small_plan());
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(deserialize(bytes.substr(0, size)).ok()) << size;
  EXPECT_FALSE(deserialize(bytes + '\0').ok());
}

// With the checksum repaired, what is inside must be refused or be a plan of sound structure; it must never crash.
TEST(Plan, SurvivesMutationsBehindAValidChecksum) {
  const std::string bytes = serialize(small_plan());
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string broken = bytes;
    const int count = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < count; ++i) {
      const size_t at = sizeof(PlanHeader) + random() % (broken.size() - sizeof(PlanHeader));
      broken[at] = static_cast<char>(random());
    }
    PlanHeader header;
    std::memcpy(&header, broken.data(), sizeof header);
    header.checksum = trace::hash_bytes(broken.data() + sizeof header, broken.size() - sizeof header);
    std::memcpy(broken.data(), &header, sizeof header);
    const Result<Plan> plan = deserialize(broken);
    if (!plan.ok()) continue;
    ++accepted;
    EXPECT_TRUE(check_structure(plan.value()).ok());
  }
  EXPECT_GT(accepted, 0);  // names, times and hashes may hold anything
}

TEST(Plan, StructureCheckNamesWhatIsWrong) {
  struct Case {
    const char* says;
    std::function<void(Plan&)> breaks;
  };
  const Case cases[] = {
      {"do not fit its budget", [](Plan& p) { p.chunk_count = 4; }},
      // A reader that makes room for each would take eight gigabytes; the plan is refused first.
      {"more chunks than its placements",
       [](Plan& p) {
         p.budget_bytes = uint64_t{1} << 60;
         p.chunk_count = 1u << 31;
       }},
      {"reserves more", [](Plan& p) { p.reserved_bytes = p.budget_bytes + 1; }},
      {"chunk_bytes", [](Plan& p) { p.chunk_bytes = 0; }},
      {"chunk that does not exist", [](Plan& p) { p.placements[0].chunks[1] = 3; }},
      {"chunk twice", [](Plan& p) { p.placements[0].chunks[1] = 0; }},
      {"wrong number of chunks", [](Plan& p) { p.tensors[0].chunk_count = 1; }},
      {"no fitting home", [](Plan& p) { p.tensors[0].home = 1; }},
      {"behind transient", [](Plan& p) { p.tensors[2].allocate_call = p.tensors[2].free_call = kNone; }},
      {"neither persistent", [](Plan& p) { p.tensors[0].free_call = 2; }},
      {"calls that allocate and free", [](Plan& p) { p.tensors[1].free_call = 4; }},
      {"outside the slab", [](Plan& p) { p.tensors[2].slab_offset = p.slab_bytes; }},
      {"impossible state", [](Plan& p) { p.tensors[1].resident_at_start = true; }},
      {"leaves its tensor", [](Plan& p) { p.calls[1].accesses[1].offset = 1 << 20; }},
      {"does not exist", [](Plan& p) { p.calls[1].accesses[0].tensor = 3; }},
      {"not its vertex", [](Plan& p) { p.calls[1].vertex = 0; }},
      {"no known kind", [](Plan& p) { p.calls[1].kind = static_cast<CallKind>(9); }},
      {"wrong predecessor", [](Plan& p) { p.vertices[1].predecessors[0].distance = 2; }},
      {"wrong predecessor", [](Plan& p) { p.vertices[1].predecessors[0].vertex = 5; }},
      {"does not fit", [](Plan& p) { p.vertices[1].acquires[0].placement = 0; }},
      {"does not own", [](Plan& p) { p.vertices[0].acquires.clear(); }},
      {"moves a small", [](Plan& p) { p.vertices[3].tensor = 2; }},
      {"every vertex once", [](Plan& p) { p.order[1] = 0; }},
      {"before its predecessor", [](Plan& p) { std::swap(p.order[0], p.order[1]); }},
      {"do not add up", [](Plan& p) { p.offload_bytes += 1; }},
  };
  for (const Case& item : cases) {
    Plan plan = small_plan();
    item.breaks(plan);
    const Status status = check_structure(plan);
    EXPECT_EQ(status.code(), StatusCode::corrupt) << item.says;
    EXPECT_TRUE(has(status.message(), item.says)) << " | " << item.says;
    EXPECT_FALSE(deserialize(serialize(plan)).ok()) << item.says;
  }
}

// Plans of older versions may have one; the tensor ends at the chunk's end, or one byte behind it.
TEST(Plan, IsNotEnforcedWithASmallTensorOverTheEndOfAChunk) {
  Plan plan = small_plan();
  plan.slab_bytes = 4 << 20;
  plan.tensors[2].slab_offset = (2 << 20) - plan.tensors[2].size;
  for (const Safety safety : {Safety::strict, Safety::audited, Safety::trusted}) {
    EXPECT_EQ(why_not_enforced(plan, safety), why_not_enforced(small_plan(), safety)) << "it lies in one";
    ++plan.tensors[2].slab_offset;
    EXPECT_EQ(why_not_enforced(plan, safety).find("puts a small tensor over the end of a chunk"), 0u);
    --plan.tensors[2].slab_offset;
  }
}

TEST(Plan, IsReplacedInOneStepAndReadBack) {
  const std::string path = temporary_path("plan_test");
  std::ofstream(path) << "an older file";
  ASSERT_TRUE(write_plan(small_plan(), path).ok());
  EXPECT_EQ(to_text(good(read_plan(path))), to_text(small_plan()));
  EXPECT_FALSE(std::filesystem::exists(path + "." + std::to_string(::getpid()) + ".tmp"));
  std::filesystem::remove(path);
}

TEST(Plan, FileErrorsSayWhichFile) {
  const std::string missing = temporary_path("no_such_plan");
  EXPECT_EQ(read_plan(missing).status().code(), StatusCode::not_found);
  EXPECT_TRUE(has(read_plan(missing).status().message(), missing));
  EXPECT_EQ(write_plan(small_plan(), missing + "/plan").code(), StatusCode::io_error);
  EXPECT_FALSE(read_plan("/").ok());
  const std::string foreign = temporary_path("foreign");
  std::ofstream(foreign) << std::string(100, 'x');
  EXPECT_EQ(read_plan(foreign).status().code(), StatusCode::corrupt);
  std::filesystem::remove(foreign);
}

TEST(Plan, TextHasOneLinePerItem) {
  const std::string text = to_text(small_plan());
  EXPECT_TRUE(has(text, "tensor 0 size=3145728 allocation=7 chunks=2 persistent home=0\n"));
  EXPECT_TRUE(has(text, "tensor 2 size=100 allocation=10 chunks=0 transient 3..4 slab@512\n"));
  EXPECT_TRUE(has(text, "vertex 0 reload tensor=0 0..0 acquire=0@0 3':data\n"));
  EXPECT_TRUE(has(text, "order 0 1 3 2 4\n"));
}

}  // namespace
}  // namespace reprise::plan
