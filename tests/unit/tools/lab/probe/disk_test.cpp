#include "tools/lab/probe/measure/disk.h"

#include "tests/support/test.h"

namespace reprise::probe {
namespace {

constexpr size_t kRequest = 64 << 10;
constexpr size_t kRequests = 24;
constexpr unsigned kDepth = 4;

struct Free {
  void operator()(char* data) const { std::free(data); }
};
using Buffer = std::unique_ptr<char, Free>;
Buffer make_buffer(char value) {
  Buffer buffer(static_cast<char*>(std::aligned_alloc(4096, kRequest * kDepth)));
  std::fill_n(buffer.get(), kRequest * kDepth, value);
  return buffer;
}

class Disk : public testing::TestWithParam<DiskMethod> {};

TEST_P(Disk, BytesComeBack) {
  const auto file = good(ScratchFile::create(testing::TempDir()));
  const Buffer out = make_buffer('w');
  const auto written = run_disk_job(file, {true, GetParam(), kRequest, kRequests, kDepth, out.get()});
  if (written.status().code() == StatusCode::unsupported) GTEST_SKIP() << written.status().message();
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_EQ(lseek(file.descriptor(), 0, SEEK_END), static_cast<off_t>(kRequest * kRequests));
  for (size_t i = 0; i < kRequests; ++i) {
    const Buffer one = make_buffer('?');
    ASSERT_EQ(pread(file.descriptor(), one.get(), kRequest, static_cast<off_t>(i * kRequest)),
              static_cast<ssize_t>(kRequest));
    EXPECT_EQ(std::memcmp(out.get(), one.get(), kRequest), 0) << i;
  }
  const Buffer in = make_buffer('?');
  const auto read = run_disk_job(file, {false, GetParam(), kRequest, kRequests, kDepth, in.get()});
  ASSERT_TRUE(read.ok()) << read.status().message();
  // A thread that came too late for any request leaves its slot as it was; none may hold a part of a request.
  unsigned filled = 0;
  for (unsigned slot = 0; slot < kDepth; ++slot) {
    const char* data = in.get() + slot * kRequest;
    const bool all = std::memcmp(out.get(), data, kRequest) == 0;
    filled += all ? 1 : 0;
    EXPECT_TRUE(all || std::count(data, data + kRequest, '?') == static_cast<std::ptrdiff_t>(kRequest)) << slot;
  }
  EXPECT_GT(filled, 0u);
}

TEST_P(Disk, ReadingPastTheEndIsAnError) {
  const auto file = good(ScratchFile::create(testing::TempDir()));
  const Buffer buffer = make_buffer(0);
  EXPECT_FALSE(run_disk_job(file, {false, GetParam(), kRequest, kRequests, kDepth, buffer.get()}).ok());
}

INSTANTIATE_TEST_SUITE_P(Methods, Disk, testing::Values(DiskMethod::io_uring, DiskMethod::threads),
                         [](const auto& parameter) { return to_string(parameter.param); });

TEST(DiskJob, RefusesSizesThatDirectAccessCannotTake) {
  const auto file = good(ScratchFile::create(testing::TempDir()));
  EXPECT_EQ(run_disk_job(file, {true, DiskMethod::threads, 1000, 1, 1, nullptr}).status().code(),
            StatusCode::invalid_argument);
}

TEST(ScratchFile, LeavesNoName) {
  const std::string folder = testing::TempDir() + "scratch" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  {
    const auto file = good(ScratchFile::create(folder));
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove(folder);
  EXPECT_FALSE(ScratchFile::create("/nonexistent").ok());
}

}  // namespace
}  // namespace reprise::probe
