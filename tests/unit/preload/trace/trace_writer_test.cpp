// The writer in a program that makes it hard: many threads, kill, fork, full disks, closed descriptors.
#include <pthread.h>
#include <sys/resource.h>

#include <cerrno>

#include "preload/trace/ending.h"
#include "preload/trace/reader.h"
#include "preload/trace/writer.h"
#include "tests/support/test.h"

namespace reprise::trace {
namespace {

class TraceWriter : public ::testing::Test {
 protected:
  Writer* open() {
    const char* why = "";
    Writer* writer = Writer::open(path_.c_str(), &why);
    EXPECT_NE(writer, nullptr) << why;
    return writer;
  }
  Trace read() { return good(read_trace(path_)); }

  const Scratch scratch_;
  const std::string path_ = scratch_.path("t.trace");
};

// An op with `accesses` accesses whose contents follow from `sequence`.
bool write_op(Writer* writer, uint64_t sequence, uint32_t accesses = 1) {
  const auto bytes = static_cast<uint32_t>(sizeof(OpRecord) + accesses * sizeof(AccessRecord));
  auto* record = static_cast<OpRecord*>(writer->reserve(bytes));
  if (record == nullptr) return false;
  std::memset(record, 0, bytes);
  record->header = {RecordKind::op, 0, bytes, sequence};
  record->signature = sequence * 31;
  record->access_count = accesses;
  auto* access = reinterpret_cast<AccessRecord*>(record + 1);
  for (uint32_t i = 0; i < accesses; ++i) access[i].allocation = sequence + i;
  writer->commit();
  return true;
}

void expect_ops(const Trace& trace, uint64_t count) {
  ASSERT_EQ(trace.events.size(), count);
  for (uint64_t i = 0; i < count; ++i) {
    const Op& op = std::get<Op>(trace.events[i]);
    ASSERT_EQ(op.record.header.sequence, i);
    ASSERT_EQ(op.record.signature, i * 31);
    for (size_t j = 0; j < op.accesses.size(); ++j) ASSERT_EQ(op.accesses[j].allocation, i + j);
  }
}

TEST_F(TraceWriter, WritesWhatWasCommittedAndAnEnd) {
  Writer* writer = open();
  for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(write_op(writer, i));
  writer->close();
  const Trace trace = read();
  EXPECT_TRUE(trace.tail.ok()) << trace.tail.message();
  EXPECT_TRUE(trace.ended);
  EXPECT_EQ(trace.dropped, 0u);
  expect_ops(trace, 100);
  writer->close();
  EXPECT_FALSE(write_op(writer, 100));
}

// More than the ring holds, with record sizes that never fit its end exactly.
TEST_F(TraceWriter, WrapsItsBufferWithoutLosingARecord) {
  Writer* writer = open();
  constexpr uint64_t kOps = 60'000;
  for (uint64_t i = 0; i < kOps; ++i) {
    while (!write_op(writer, i, static_cast<uint32_t>(i % 7))) std::this_thread::yield();
  }
  writer->close();
  expect_ops(read(), kOps);
}

TEST_F(TraceWriter, TakesTheLargestRecordAndRefusesALargerOne) {
  Writer* writer = open();
  constexpr uint32_t kLargest = (Writer::kMaxRecordBytes - sizeof(OpRecord)) / sizeof(AccessRecord);
  EXPECT_TRUE(write_op(writer, 0, kLargest));
  EXPECT_FALSE(write_op(writer, 1, kLargest + 1));
  EXPECT_TRUE(write_op(writer, 1, 3));
  EXPECT_EQ(writer->dropped(), 1u);
  writer->close();
  const Trace trace = read();
  EXPECT_EQ(trace.dropped, 1u);
  expect_ops(trace, 2);
}

TEST_F(TraceWriter, ThreadsComeAndGo) {
  Writer* writer = open();
  constexpr uint64_t kPerThread = 2000;
  constexpr uint64_t kWaves = 100;  // more threads in all than there are buffers
  for (uint64_t wave = 0; wave < kWaves; ++wave) {
    std::vector<std::thread> threads;
    for (uint64_t part = 0; part < 4; ++part) {
      threads.emplace_back([=] {
        const uint64_t first = (wave * 4 + part) * kPerThread / 10;
        for (uint64_t i = 0; i < kPerThread / 10; ++i) write_op(writer, first + i);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  writer->close();
  EXPECT_EQ(writer->dropped(), 0u);
  expect_ops(read(), kWaves * 4 * kPerThread / 10);
}

TEST_F(TraceWriter, TwoWritersInOneThreadKeepTheirRecordsApart) {
  Writer* first = open();
  const std::string other = scratch_.folder() + "/other.trace";
  Writer* second = Writer::open(other.c_str(), nullptr);
  for (uint64_t i = 0; i < 10; ++i) {
    write_op(first, i);
    if (i < 5) write_op(second, i);
  }
  first->close();
  second->close();
  expect_ops(read(), 10);
  expect_ops(read_trace(other).value(), 5);
}

TEST_F(TraceWriter, FlushMakesItReadableAtOnce) {
  Writer* writer = open();
  for (uint64_t i = 0; i < 3; ++i) {
    write_op(writer, i);
    ASSERT_TRUE(writer->flush(10'000));
    const Trace trace = read();
    EXPECT_TRUE(trace.tail.ok());
    EXPECT_FALSE(trace.ended);
    expect_ops(trace, i + 1);
  }
  writer->close();
  EXPECT_FALSE(writer->flush(10));
}

TEST_F(TraceWriter, AKilledProgramLeavesAReadableTrace) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Writer* writer = Writer::open(path_.c_str(), nullptr);
    for (uint64_t i = 0; i < 500; ++i) write_op(writer, i);
    writer->flush(10'000);
    for (uint64_t i = 500;; ++i) {
      if (!write_op(writer, i)) --i;
      if (i == 5000) ::raise(SIGKILL);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Trace trace = read();
  EXPECT_FALSE(trace.ended);
  EXPECT_GE(trace.events.size(), 500u);
  expect_ops(trace, trace.events.size());
}

TEST_F(TraceWriter, AForkChildLeavesTheParentsFileAlone) {
  Writer* writer = open();
  write_op(writer, 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    writer->abandon();
    const bool wrote = write_op(writer, 77);
    const bool flushed = writer->flush(1000);
    writer->close();
    ::_exit(wrote || flushed ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  write_op(writer, 1);
  writer->close();
  expect_ops(read(), 2);
}

TEST_F(TraceWriter, AForkChildThatNobodyToldDoesNotHang) {
  Writer* writer = open();
  write_op(writer, 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(3);
    writer->close();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  writer->close();
  expect_ops(read(), 1);
}

TEST_F(TraceWriter, SaysWhyItCannotOpen) {
  const char* why = nullptr;
  EXPECT_EQ(Writer::open((scratch_.folder() + "/missing/t.trace").c_str(), &why), nullptr);
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(std::string(why),
            "cannot open the trace " + scratch_.folder() + "/missing/t.trace: No such file or directory");
  EXPECT_EQ(Writer::open("/dev/full", &why), nullptr);
  EXPECT_EQ(std::string(why), "cannot write the trace /dev/full: No space left on device");
}

// In a child, because the limit and the message are the process's own.
TEST_F(TraceWriter, AFullDiskStopsItWithOneLineAndAWholeTrace) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::signal(SIGXFSZ, SIG_DFL);
    const rlimit limit{64 * 1024, 64 * 1024};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Writer* writer = Writer::open(path_.c_str(), nullptr);
    uint64_t i = 0;
    while (i < 10'000'000 && writer->flush(10'000)) {
      for (int j = 0; j < 100; ++j) write_op(writer, i++);
    }
    const bool refused = !write_op(writer, i);
    writer->close();
    ::_exit(refused ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  char block[256];
  for (ssize_t size; (size = ::read(ends[0], block, sizeof(block))) > 0;) said.append(block, static_cast<size_t>(size));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(said, "reprise: cannot write the trace: File too large; recording stopped\n");
  const Trace trace = read();
  EXPECT_TRUE(trace.tail.ok()) << trace.tail.message();
  EXPECT_FALSE(trace.ended);
  EXPECT_GT(trace.events.size(), 0u);
  const Ending ending = read_ending(path_).value();
  EXPECT_FALSE(ending.ended);
  EXPECT_EQ(ending.stopped_by, static_cast<uint32_t>(EFBIG));
}

TEST_F(TraceWriter, TheEndingTellsAWholeTraceFromOneThatWasCut) {
  Writer* writer = open();
  for (uint64_t i = 0; i < 100'000; ++i) write_op(writer, i);
  ASSERT_TRUE(writer->flush(10'000));
  EXPECT_FALSE(read_ending(path_).value().ended) << "the program may still be killed";
  writer->close();
  EXPECT_TRUE(read_ending(path_).value().ended);
  EXPECT_EQ(read_ending(path_).value().stopped_by, 0u);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  EXPECT_FALSE(read_ending(path_).value().ended);
  EXPECT_FALSE(read_ending("/dev/null").ok());
  EXPECT_FALSE(read_ending("/no/such/file").ok());
}

TEST_F(TraceWriter, NeverWritesIntoTheProgramsFileWhenItsDescriptorWasReused) {
  Writer* writer = open();
  write_op(writer, 0);
  ASSERT_TRUE(writer->flush(10'000));
  const std::string victim = scratch_.folder() + "/victim";
  struct stat trace_status;
  ASSERT_EQ(::stat(path_.c_str(), &trace_status), 0);
  int file = -1;
  for (int candidate = 3; candidate < 2048; ++candidate) {
    struct stat status;
    if (::fstat(candidate, &status) == 0 && status.st_ino == trace_status.st_ino) file = candidate;
  }
  ASSERT_GE(file, 0);
  const int other = ::open(victim.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::dup2(other, file), file);
  write_op(writer, 1);
  EXPECT_FALSE(writer->flush(10'000));
  writer->close();
  EXPECT_EQ(std::filesystem::file_size(victim), 0u);
  EXPECT_EQ(::fcntl(file, F_GETFD) >= 0, true) << "the program's descriptor was closed";
  ::close(file);
  ::close(other);
}

TEST_F(TraceWriter, ItsThreadTakesNoSignals) {
  Writer* writer = open();
  static std::atomic<int> elsewhere{0};
  static pthread_t me;
  me = ::pthread_self();
  struct sigaction action {};
  action.sa_handler = [](int) {
    if (::pthread_equal(::pthread_self(), me) == 0) elsewhere.fetch_add(1);
  };
  struct sigaction before;
  ::sigaction(SIGUSR1, &action, &before);
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR1);
  // With this thread's signal blocked, a process-directed one would go to any thread that takes it.
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  ::kill(::getpid(), SIGUSR1);
  EXPECT_TRUE(writer->flush(10'000));
  ::usleep(50'000);
  EXPECT_EQ(elsewhere.load(), 0);
  ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
  ::sigaction(SIGUSR1, &before, nullptr);
  writer->close();
}

TEST_F(TraceWriter, BackgroundWorkMayRecordUntilTheEnd) {
  static Writer* writer;
  static bool done;
  writer = open();
  done = false;
  const auto work = [](void*) noexcept {
    if (!done) done = write_op(writer, 0);
    return false;
  };
  writer->set_background_work(work, nullptr);
  writer->close();
  EXPECT_TRUE(done);
  expect_ops(read(), 1);
}

// Work that takes longer than a buffer takes to fill: the program's thread waits for room and loses nothing. On a busy
// machine that thread may not run while the work lasts, so it gets more than one chance to wait.
TEST_F(TraceWriter, SlowWorkLosesNoRecord) {
  static std::atomic<int> slices;
  uint64_t waits = 0;
  for (int attempt = 0; attempt < 10 && waits == 0; ++attempt) {
    Writer* writer = open();
    slices = 0;
    const auto work = [](void*) noexcept {
      ::usleep(150'000);
      return ++slices < 4;
    };
    writer->set_background_work(work, nullptr);
    constexpr uint64_t kOps = 60'000;
    for (uint64_t i = 0; i < kOps; ++i) ASSERT_TRUE(write_op(writer, i));
    waits = writer->waits();
    writer->close();
    const Trace trace = read();
    expect_ops(trace, kOps);
    EXPECT_TRUE(trace.gaps.empty());
    EXPECT_EQ(trace.info.count("recorder.waits"), waits > 0 ? 1u : 0u);
    if (waits > 0) {
      EXPECT_EQ(trace.info.at("recorder.waits"), std::to_string(waits));
    }
  }
  EXPECT_GT(waits, 0u);
}

// Where nothing is taken away for too long, the trace says between which calls records are missing.
TEST_F(TraceWriter, AGapSaysWhatIsMissing) {
  static std::atomic<bool> stuck;
  Writer* writer = open();
  stuck = true;
  const auto work = [](void*) noexcept {
    while (stuck) ::usleep(1'000);
    return false;
  };
  writer->set_background_work(work, nullptr);
  uint64_t sequence = 1;
  while (write_op(writer, sequence)) ++sequence;
  const uint64_t kept = sequence - 1;
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(write_op(writer, ++sequence));
  stuck = false;
  EXPECT_TRUE(writer->flush(10'000));
  ++sequence;
  EXPECT_TRUE(write_op(writer, sequence));
  writer->close();
  const Trace trace = read();
  EXPECT_EQ(trace.dropped, 10u);
  ASSERT_EQ(trace.gaps.size(), 1u);
  EXPECT_EQ(trace.gaps[0].records, 10u);
  EXPECT_EQ(trace.gaps[0].after_sequence, kept);
  EXPECT_EQ(trace.gaps[0].header.sequence, sequence);
}

}  // namespace
}  // namespace reprise::trace
