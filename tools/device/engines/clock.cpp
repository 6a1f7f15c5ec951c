#include "tools/device/engines/clock.h"

#include <sys/prctl.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <unordered_map>

#include "tools/device/base/settings.h"

namespace reprise::sim {
namespace {

constexpr double kNsPerSecond = 1e9;

uint64_t read_clock(clockid_t clock) noexcept {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t over_rate(uint64_t bytes, uint64_t rate) noexcept {
  return static_cast<uint64_t>(static_cast<double>(bytes) / static_cast<double>(rate) * kNsPerSecond);
}

// Kernels' times in nanoseconds, by name.
using KernelTimes = std::unordered_map<std::string, uint64_t>;

// "NAME MICROSECONDS", or nothing. False: something else.
bool read_line(const std::string& line, KernelTimes& times) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string name;
  if (!(words >> name)) return true;
  double microseconds = -1;
  std::string more;
  if (!(words >> microseconds) || !(microseconds >= 0) || microseconds > 1e9 || words >> more) return false;
  times[name] = static_cast<uint64_t>(microseconds * 1000);
  return true;
}

KernelTimes read_times(const char* path) {
  KernelTimes times;
  std::ifstream file(path);
  if (!file) std::fprintf(stderr, "reprise: simulated device: REPRISE_SIM_KERNEL_TIMES=%s cannot be read\n", path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (read_line(line, times)) continue;
    std::fprintf(stderr, "reprise: simulated device: %s:%d is not a kernel's name and microseconds\n", path, number);
  }
  return times;
}

const KernelTimes& kernel_times() {
  static const KernelTimes& instance = *new KernelTimes(read_times(settings().kernel_times));
  return instance;
}

}  // namespace

uint64_t now_ns() noexcept { return read_clock(CLOCK_MONOTONIC); }
uint64_t thread_cpu_ns() noexcept { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

void nap_until(uint64_t deadline_ns) noexcept {
  if (deadline_ns <= now_ns()) return;
  timespec time;
  time.tv_sec = static_cast<time_t>(deadline_ns / 1'000'000'000);
  time.tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

void sleep_until(uint64_t deadline_ns) noexcept {
  // The kernel wakes a sleeper some 50 us late: sleep short of it, then spin.
  constexpr uint64_t kSlackNs = 60'000;
  if (deadline_ns > now_ns() + kSlackNs) nap_until(deadline_ns - kSlackNs);
  while (now_ns() < deadline_ns) __builtin_ia32_pause();
}

void nap_precisely() noexcept { prctl(PR_SET_TIMERSLACK, 1UL); }

bool modelled_clock() noexcept {
  static const bool on = settings().memory_bytes_per_second != 0 || settings().kernel_times != nullptr;
  return on;
}

Duration kernel_duration(const std::string& name, uint64_t bytes) {
  if (settings().kernel_times != nullptr) {
    const auto found = kernel_times().find(name);
    if (found != kernel_times().end()) return {found->second, true};
  }
  Duration duration = memory_duration(bytes);
  if (duration.exact) duration.ns += settings().launch_time.nanoseconds;
  return duration;
}

Duration memory_duration(uint64_t bytes) noexcept {
  const uint64_t rate = settings().memory_bytes_per_second;
  if (rate == 0) return {};
  return {over_rate(bytes, rate), true};
}

Duration link_duration(uint64_t bytes, uint64_t rate, uint64_t latency_ns) noexcept {
  if (rate == 0) return {latency_ns, false};
  return {latency_ns + over_rate(bytes, rate), true};
}

}  // namespace reprise::sim
