#include "tools/cli/progress.h"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "preload/base/readable.h"

namespace reprise::tools {
namespace {

constexpr auto kTick = std::chrono::milliseconds(500);

std::string time_text(double seconds) {
  if (seconds < 100) return decimal(seconds, 1, 0) + " s";
  const auto whole = static_cast<uint64_t>(seconds);
  return whole < 6000 ? fmt::format("{} min", (whole + 30) / 60) : decimal(seconds, 3600, 1) + " h";
}

}  // namespace

std::string progress_text(uint64_t done, uint64_t total, double seconds) {
  if (total == 0) return seconds < 1 ? std::string() : time_text(seconds);
  std::string count = fmt::format("{} of {}", done, total);
  if (done == 0 || seconds < 1) return count;
  const double rate = static_cast<double>(done) / seconds;
  const double left = static_cast<double>(total - done) / rate;
  return fmt::format("{}, {:.2g} a second, {} left", count, rate, time_text(left));
}

Progress::Progress(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  clear();
}

void Progress::step(std::string_view what) {
  if (wanted_) begin(what, 0, 0);
}

void Progress::step(std::string_view what, uint64_t done, uint64_t total) {
  if (wanted_) begin(what, done, total);
}

void Progress::begin(std::string_view what, uint64_t done, uint64_t total) {
  const std::lock_guard lock(mutex_);
  if (total == 0 || total != total_) began_ = Clock::now();
  what_ = what;
  done_ = done;
  total_ = total;
  show();
  if (ticker_.joinable()) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the main thread's
  ticker_ = std::thread([this] { tick(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Progress::show() {
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  const std::string amount = progress_text(done_, total_, seconds);
  std::fputs(fmt::format("\r\x1b[Kreprise: {} ...{}{}", what_, amount.empty() ? "" : " ", amount).c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::tick() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kTick, [this] { return ending_; })) {
    if (shown_) show();
  }
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace reprise::tools
