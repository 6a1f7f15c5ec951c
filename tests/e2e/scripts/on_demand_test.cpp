// Memory managed on demand against the same program without Reprise: the same bytes, within the budget, whatever the
// program does.
#include <rapidcheck.h>

#include "tests/e2e/scripts/script_runner.h"
#include "tests/support/test.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kChunk = 64 * 1024;

// Builds scripts in which work on different streams is ordered by events wherever it shares memory.
class Author {
 public:
  void allocate(const std::string& name, uint64_t bytes, int stream) {
    script += "alloc " + name + " " + std::to_string(bytes);
    if (stream >= 0) script += " " + std::to_string(stream);
    script += "\n";
    last_[name] = stream;
    ordered_[name] = stream >= 0;
  }
  void free(const std::string& name) {
    if (!ordered_[name]) {
      script += "free " + name + "\n";
    } else {
      use({name}, 0);
      script += "free " + name + " 0\n";
    }
    last_.erase(name);
  }
  // Work on `stream` touches these tensors.
  void use(const std::vector<std::string>& names, int stream) {
    for (const std::string& name : names) {
      const int before = last_[name];
      if (before >= 0 && before != stream) {
        const std::string event = std::string("e").append(std::to_string(events_++ % 7));
        script += "record " + event + " " + std::to_string(before) + "\n";
        script += "wait " + event + " " + std::to_string(stream) + "\n";
      }
      last_[name] = stream;
    }
  }
  std::vector<std::string> alive() const {
    std::vector<std::string> names;
    for (const auto& [name, stream] : last_) names.push_back(name);
    return names;
  }

  std::string script;

 private:
  std::map<std::string, int> last_;
  std::map<std::string, bool> ordered_;
  int events_ = 0;
};

std::string name_of(int number) { return std::string("t").append(std::to_string(number)); }

std::string pick(const std::vector<std::string>& names) { return *rc::gen::elementOf(names); }

void add_step(Author& author, int number, int streams) {
  const int stream = *rc::gen::inRange(0, streams);
  const std::string on = std::to_string(stream);
  const std::vector<std::string> alive = author.alive();
  const int what = alive.size() < 3 ? 0 : *rc::gen::inRange(0, 14);
  if (what <= 1) {
    const uint64_t bytes = *rc::gen::weightedOneOf<uint64_t>(
        {{1, rc::gen::inRange<uint64_t>(1, 3000)}, {3, rc::gen::inRange<uint64_t>(kChunk / 2, 5 * kChunk)}});
    const bool ordered = *rc::gen::arbitrary<bool>();
    author.allocate(name_of(number), bytes, ordered ? 0 : -1);
  } else if (what == 2) {
    author.free(pick(alive));
  } else if (what <= 8) {
    static const char* const kernels[] = {"one", "two", "three", "four"};
    const int count = *rc::gen::inRange(1, 4);
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back(pick(alive));
    author.use(names, stream);
    author.script += "kernel " + on + " " + kernels[count - 1];
    for (const std::string& name : names) author.script += " " + name;
    author.script += "\n";
  } else if (what == 9) {
    const std::string name = pick(alive);
    author.use({name}, stream);
    author.script += "memset " + on + " " + name + " " + std::to_string(number % 251) + "\n";
  } else if (what == 10) {
    const std::string from = pick(alive), to = pick(alive);
    author.use({from, to}, stream);
    if (from != to) author.script += "copy " + on + " " + from + " " + to + "\n";
  } else if (what <= 12) {
    const std::string name = pick(alive);
    const bool sync = *rc::gen::arbitrary<bool>();
    author.use({name}, sync ? 0 : stream);
    author.script += (what == 11 ? "h2d " : "d2h ") + on + " " + name +
                     (what == 11 ? " " + std::to_string(number) : "") +
                     (*rc::gen::arbitrary<bool>() ? " pinned" : " pageable") + (sync ? " sync\n" : " async\n");
  } else {
    static const char* const calls[] = {"csync", "ssync 0", "ssync 1", "poll e0", "esync e1", "host 0", "edestroy e2"};
    author.script +=
        std::string(*rc::gen::elementOf(std::vector<std::string>(std::begin(calls), std::end(calls)))) + "\n";
  }
}

std::string random_script(int streams) {
  Author author;
  const int steps = *rc::gen::inRange(5, 90);
  for (int i = 0; i < steps; ++i) add_step(author, i, streams);
  return author.script;
}

void expect_same(const std::string& script, const std::string& budget, uint64_t budget_bytes) {
  const Outcome plain = run_plain(script);
  RC_ASSERT(plain.exit_code == 0);
  const Outcome managed = run_managed(script, budget);
  if (managed.output != plain.output) RC_LOG() << script << plain.output << managed.output << managed.err;
  RC_ASSERT(managed.exit_code == 0);
  RC_ASSERT(managed.output == plain.output);
  if (managed.peak_bytes > budget_bytes) RC_LOG() << script << managed.peak_bytes;
  RC_ASSERT(managed.peak_bytes <= budget_bytes);
}

TEST(PassiveTest, OneStream) {
  EXPECT_TRUE(rc::check("a tight budget changes nothing but time", [] {
    const std::string script = random_script(1);
    // Three tensors of five chunks, and slabs.
    const uint64_t chunks = *rc::gen::inRange<uint64_t>(19, 30);
    expect_same(script, std::to_string(chunks * kChunk), chunks * kChunk);
  }));
}

TEST(PassiveTest, SixStreams) {
  EXPECT_TRUE(rc::check("streams and events keep their meaning", [] {
    const std::string script = random_script(6);
    const uint64_t chunks = *rc::gen::inRange<uint64_t>(19, 30);
    expect_same(script, std::to_string(chunks * kChunk), chunks * kChunk);
  }));
}

// Eight tensors of four chunks, used in pairs.
std::string ring_of_tensors(int rounds) {
  std::string script;
  for (int i = 0; i < 8; ++i) script += "alloc t" + std::to_string(i) + " 262144\n";
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 8; ++i) {
      script += "kernel 0 two t" + std::to_string(i) + " t" + std::to_string((i + 1 + round) % 8) + "\n";
    }
  }
  return script;
}

// The staging area is a whole number of these copies: the one after the last begins at its start again.
TEST(PassiveTest, PageableCopiesThatFillTheStagingAreaToItsEnd) {
  for (const int bytes : {1 << 20, 1 << 19}) {
    std::string script = "alloc a " + std::to_string(bytes) + "\nalloc b " + std::to_string(bytes) + "\n";
    for (int i = 0; i < 60; ++i) {
      script += "h2d 2 " + std::string(i % 2 != 0 ? "a " : "b ") + std::to_string(i) + " pageable sync\n";
      if (i % 10 == 9) script += "d2h 2 a pageable sync\nd2h 2 b pageable sync\n";
    }
    const Outcome plain = run_plain(script);
    const Outcome managed = run_managed(script, "4MiB");
    EXPECT_EQ(managed.exit_code, 0) << managed.err;
    EXPECT_EQ(managed.output, plain.output);
  }
}

TEST(PassiveTest, APercentageStaysBelowItsShareOfThePeak) {
  const std::string script = ring_of_tensors(3);
  const Outcome plain = run_plain(script);
  const Outcome managed = run_managed(script, "50%");
  EXPECT_EQ(managed.output, plain.output);
  EXPECT_LE(managed.peak_bytes, 4u * 262144);
  EXPECT_GT(managed.copied_bytes, 8u * 262144) << "nothing was evicted: the test tests nothing";
}

TEST(PassiveTest, ACallThatNeedsMoreThanTheBudgetGetsTheHonestError) {
  std::string script = "alloc a 262144\nalloc b 262144\nalloc c 262144\n";
  script += "kernel 0 one a\nkernel 0 three a b c\nkernel 0 two a b\n";
  const Outcome managed = well(run_managed(script, std::to_string(8 * kChunk)));
  EXPECT_TRUE(has(managed.output, "kernel three: error 2"));
  EXPECT_FALSE(has(managed.output, "kernel two")) << "later calls are unharmed: ";
  EXPECT_TRUE(has(managed.err, "three needs"));
  EXPECT_LE(managed.peak_bytes, 8 * kChunk);
}

TEST(PassiveTest, WordsThatAStreamWritesLandInTheirTensorHoweverFullTheDeviceIs) {
  std::string script;
  for (const char* name : {"a", "b", "c"}) {
    script += std::string("alloc ") + name + " 393216\nmemset 2 " + name + " 7\n";
  }
  for (int word = 0; word < 3; ++word) {
    for (const char* name : {"a", "b", "c"}) {
      script +=
          std::string("put 2 ") + name + " " + std::to_string(word * 131072) + " " + std::to_string(7000 + word) + "\n";
    }
  }
  script += "d2h 2 a pageable sync\nd2h 2 b pageable sync\nd2h 2 c pageable sync\n";
  const Outcome plain = run_plain(script);
  const Outcome managed = well(run_managed(script, "640KiB"));
  EXPECT_EQ(managed.output, plain.output);
  EXPECT_GT(managed.copied_bytes, plain.copied_bytes) << "nothing was evicted: the test tests nothing";
}

// An opaque call finds all memory where the program left it, or is refused.
TEST(PassiveTest, AnOpaqueCallThatNeedsMoreThanTheBudgetIsRefused) {
  const std::string tensors = "alloc a 262144\nmemset 2 a 9\nalloc b 262144\nmemset 2 b 9\n";
  const std::string opaque = "wait_value 2 a 1\n";
  const std::string rest = "kernel 2 two a b\nd2h 2 a pageable sync\nd2h 2 b pageable sync\n";
  const std::string more = "alloc c 262144\nmemset 2 c 9\nd2h 2 c pageable sync\n";
  const std::string budget = std::to_string(9 * kChunk);
  EXPECT_EQ(run_managed(tensors + opaque + rest, budget).output, run_plain(tensors + opaque + rest).output);

  const Outcome managed = well(run_managed(tensors + more + opaque + rest, budget));
  EXPECT_EQ(managed.output, "wait_value: error 2\n" + run_plain(tensors + more + rest).output);
  EXPECT_TRUE(has(managed.err, "cuStreamWaitValue32_v2 needs 768 KiB"));
}

// The second launch of a shape is deferred, but not where its tensors may not fit: its own call tells it, nothing else.
TEST(PassiveTest, AWorkingSetAboveTheBudgetIsAnsweredByItsCallHoweverOftenItsShapeRan) {
  std::string begin = "alloc a 262144\nalloc b 262144\nalloc c 262144\n";
  for (const char* name : {"a", "b", "c"}) begin += std::string("memset 0 ") + name + " 5\n";
  begin += "kernel 0 three a a a\ncsync\n";
  const std::string rest = "d2h 0 a pageable sync\nkernel 0 two b c\nd2h 0 b pageable sync\n";
  for (const std::string budget : {"524288", "540672"}) {
    const Outcome managed = run_managed(begin + "kernel 0 three a b c\n" + rest, budget);
    EXPECT_EQ(managed.output, "kernel three: error 2\n" + run_plain(begin + rest).output) << managed.err;
    EXPECT_TRUE(has(managed.err, "three needs 768 KiB"));
  }
}

// What fails after its call has answered SUCCESS is lost: no later call may then answer SUCCESS with old bytes. Here
// the host tier has no room for what would have to leave the device.
TEST(PassiveTest, ALostLaunchIsToldByEachCallBehindIt) {
  std::string script;
  for (const char* name : {"a", "b", "c", "d"}) {
    script += std::string("alloc ") + name + " 262144\nkernel 0 one " + name + "\n";
  }
  script += "kernel 0 one a\n";
  const std::string behind =
      "d2h 0 a pageable sync\nd2h 0 a pinned async\ncsync\nssync 0\nkernel 0 three a a a\nmemset 0 a 1\n";
  const std::string errors =
      "d2h: error 719\nd2h: error 719\nd2h synchronise: error 719\ncsync: error 719\nssync: error 719\n"
      "kernel three: error 719\nmemset: error 719\nend: error 719\n";
  for (const char* slow : {"", "sleep 20\n"}) {
    const Outcome managed =
        run_managed(script + slow + behind, std::to_string(9 * kChunk), {{"REPRISE_HOST_MEMORY", "512KiB"}});
    EXPECT_EQ(managed.exit_code, 0);
    EXPECT_TRUE(begins(managed.output, errors)) << managed.err;
    EXPECT_TRUE(has_cause(managed.err, Cause::host_memory_full, {{"then", phrase<Cause::answered_before>()}}));
  }
}

TEST(PassiveTest, AFullHostTierMakesTheAllocationFail) {
  std::string script;
  for (int i = 0; i < 8; ++i)
    script += "alloc t" + std::to_string(i) + " 262144\nkernel 0 one t" + std::to_string(i) + "\n";
  const Outcome managed = well(run_managed(script, std::to_string(8 * kChunk), {{"REPRISE_HOST_MEMORY", "512KiB"}}));
  EXPECT_TRUE(has(managed.output, "error"));
  EXPECT_TRUE(has_cause(managed.err, Cause::allocation_above_tiers));
  const Outcome enough = run_managed(script, std::to_string(8 * kChunk), {{"REPRISE_HOST_MEMORY", "2MiB"}});
  EXPECT_EQ(enough.output, run_plain(script).output);
}

// Tensors come first, then they leave for code that the driver loads: the most of each was not there at one time.
TEST(PassiveTest, APeakIsOfWhatWasThereAtOnce) {
  std::string script;
  for (const char* name : {"a", "b", "c", "d"}) {
    script += std::string("alloc ") + name + " 524288\nh2d 0 " + name + " 7 pageable sync\n";
  }
  for (const char* name : {"a", "b", "c", "d"}) script += std::string("free ") + name + "\n";
  script += "alloc s 65536\n";
  for (int module = 0; module < 4; ++module) script += "load\nkernel 0 one s\ncsync\n";
  const Outcome managed = run_managed(script, std::to_string(64 * kChunk), {{"REPRISE_SIM_CODE", "768KiB"}});
  const std::string end = lines_of_kind(managed.run_log, "end").at(0);
  const uint64_t code = 12 * kChunk;
  EXPECT_EQ(number_in(end, "outside_bytes"), 5 * code) << "four modules' and Reprise's own";
  const uint64_t used = number_in(end, "peak_used_bytes");
  EXPECT_LT(used, number_in(end, "peak_device_bytes") + number_in(end, "outside_bytes"));
  EXPECT_EQ(used, managed.peak_bytes) << "as the device has counted: " << end;
}

// Chunks are larger under a large budget, and smaller tensors share them: what percentages are of does not change.
TEST(PassiveTest, WhatAProgramTakesWithoutUsIsTheSameUnderAnyBudget) {
  std::string script;
  for (const char* name : {"a", "b", "c", "d"}) {
    script +=
        std::string("alloc ") + name + " 100000\nalloc small_" + name + " 40000\nh2d 0 " + name + " 7 pageable sync\n";
  }
  const auto taken = [&](const std::string& budget) {
    const Outcome managed = run_managed(script, budget, {{"REPRISE_SIM_MEMORY", "1GiB"}});
    const std::string end = lines_of_kind(managed.run_log, "end").at(0);
    return number_in(end, "peak_footprint_bytes");
  };
  EXPECT_EQ(taken("4MiB"), 4 * (2 + 1) * kChunk);
  EXPECT_EQ(taken("512MiB"), taken("4MiB"));
}

TEST(PassiveTest, TheVirtualDeviceIsOfTheBudgetsSize) {
  const Outcome managed = run_managed("info\nalloc a 1000000\ninfo\n", "8MiB", {{"REPRISE_HOST_MEMORY", "16MiB"}});
  const std::string total = std::to_string(8 << 20);
  EXPECT_TRUE(has(managed.err, "info " + total + " " + total));
  EXPECT_TRUE(has(managed.err, "info " + std::to_string((8 << 20) - 16 * kChunk) + " " + total));
}

struct Fault {
  const char* function;
  int nth;
};

class PassiveFaultTest : public testing::TestWithParam<Fault> {};

// A refused driver call costs the program an error code, never bytes: what it reads without an error is right.
TEST_P(PassiveFaultTest, LosesNoBytes) {
  const std::string script = ring_of_tensors(1);
  std::string faulty = script;
  faulty += "inject " + std::string(GetParam().function) + " " + std::to_string(GetParam().nth) + " 2\n";
  for (int i = 0; i < 8; ++i) faulty += "d2h 0 t" + std::to_string(i) + " pageable sync\n";
  for (int i = 0; i < 8; ++i) faulty += "d2h 0 t" + std::to_string(i) + " pageable sync\n";
  const Outcome managed = well(run_managed(faulty, std::to_string(9 * kChunk)));
  // The contents at the end are those of a run without the fault.
  const auto last = [](const std::string& output) { return output.substr(output.rfind("digest")); };
  std::string clean = script;
  for (int i = 0; i < 16; ++i) clean += "d2h 0 t" + std::to_string(i % 8) + " pageable sync\n";
  const Outcome expected = run_plain(clean);
  if (managed.output.find("error") == std::string::npos) {
    EXPECT_EQ(managed.output, expected.output);
  } else {
    EXPECT_NE(last(managed.output), "");
    EXPECT_TRUE(has(managed.output, "d2h: error"));
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, PassiveFaultTest,
                         testing::Values(Fault{"cuMemcpyDtoHAsync_v2", 1}, Fault{"cuMemcpyDtoHAsync_v2", 3},
                                         Fault{"cuMemcpyHtoDAsync_v2", 1}, Fault{"cuMemcpyHtoDAsync_v2", 2},
                                         Fault{"cuMemMap", 1}, Fault{"cuMemSetAccess", 1}, Fault{"cuMemUnmap", 1},
                                         Fault{"cuEventRecord", 1}, Fault{"cuStreamWaitEvent", 1}),
                         [](const auto& fault) {
                           return std::string(fault.param.function) + "_" + std::to_string(fault.param.nth);
                         });

TEST(PassiveTest, ADeviceThatIsFullerThanTheBudgetSaysIsMadeDoWith) {
  // The second creation from here on fails: what exists has to do, and does.
  std::string script = "alloc a 262144\nalloc b 262144\nalloc c 262144\nkernel 0 one a\ncsync\n";
  script += "inject cuMemCreate 2 2\nkernel 0 one b\nkernel 0 one c\nkernel 0 one a\nkernel 0 one b\n";
  const Outcome managed = run_managed(script, std::to_string(64 * kChunk));
  const std::string plain_script =
      "alloc a 262144\nalloc b 262144\nalloc c 262144\nkernel 0 one a\nkernel 0 one b\n"
      "kernel 0 one c\nkernel 0 one a\nkernel 0 one b\n";
  EXPECT_EQ(managed.output, run_plain(plain_script).output);
}

}  // namespace
}  // namespace reprise::replay
