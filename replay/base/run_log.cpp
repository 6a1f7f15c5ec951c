#include "replay/base/run_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#include "preload/base/causes.h"
#include "preload/files/earlier_program.h"
#include "preload/files/file_limit.h"
#include "preload/files/out_of_the_way.h"
#include "preload/files/system_words.h"

namespace reprise::replay {
namespace {

constexpr size_t kWriteBytes = 64 * 1024;
constexpr uint64_t kWriteNs = 200'000'000;  // what is written later is lost where the program is killed

std::atomic<RunLogWriter*> keeper{nullptr};  // of warnings: the log that is open

void append_escaped(std::string& text, const std::string& value) {
  static const char digits[] = "0123456789abcdef";
  for (const char character : value) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte == '"' || byte == '\\') {
      text += '\\';
      text += character;
    } else if (byte < 0x20 || byte >= 0x7f) {
      // Program names and arguments need not be valid UTF-8: bytes are shown as code points.
      text += "\\u00";
      text += digits[byte >> 4];
      text += digits[byte & 15];
    } else {
      text += character;
    }
  }
}

// Of each that writes here: as long as there are any, nobody takes the file away. Where no lock can be had, as on some
// file systems, nobody can tell. Pipes and devices are everybody's.
enum class Writers : uint8_t { this_one, others_too };
Writers join_writers(int file) {
  struct stat info {};
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return Writers::this_one;
  const bool taken = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  (void)flock(file, LOCK_SH | LOCK_NB);
  return taken ? Writers::others_too : Writers::this_one;
}

// An earlier program may have been killed within a line.
void begin_a_line(int file, const char* path, off_t bytes) {
  const int there = ::open(path, O_RDONLY | O_CLOEXEC);
  char last = '\n';
  const bool cut = there >= 0 && pread(there, &last, 1, bytes - 1) == 1 && last != '\n';
  if (there >= 0) close(there);
  if (!cut) return;
  [[maybe_unused]] const ssize_t written = ::write(file, "\n", 1);
}

// What is there is an earlier run's, unless others write there now, or it is of the command that this program is of.
void make_room(int file, const char* path) {
  struct stat info {};
  if (join_writers(file) == Writers::others_too) {
    say<Cause::run_log_shared>(path);
  } else if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) {
    return;
  } else if (is_of_this_command(info, "REPRISE_RUN_LOG", path)) {
    begin_a_line(file, path, info.st_size);
    say<Cause::run_log_continued>(path);
  } else {
    say<Cause::run_log_replaced>(path);
    [[maybe_unused]] const int emptied = ftruncate(file, 0);
  }
}

}  // namespace

RunLogText::RunLogText(const char* kind, bool often) : often_(often) {
  text_ = "{\"kind\":\"";
  text_ += kind;
  text_ += '"';
}

void RunLogText::append(const char* key, uint64_t value) {
  text_ += ",\"";
  text_ += key;
  text_ += "\":";
  text_ += std::to_string(value);
}

void RunLogText::append(const char* key, const std::string& value) {
  text_ += ",\"";
  text_ += key;
  text_ += "\":\"";
  append_escaped(text_, value);
  text_ += '"';
}

std::string RunLogText::end() { return std::move(text_) + "}\n"; }

void RunLogWriter::open(const char* path, Others others) noexcept {
  if (path == nullptr || path[0] == '\0') return;
  const int file = move_out_of_the_way(::open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666));
  process_ = static_cast<uint64_t>(getpid());
  if (file < 0) say<Cause::run_log_not_writable>(path, system_words(errno));
  file_.store(file, std::memory_order_relaxed);
  if (file < 0) return;
  if (others == Others::none) {
    make_room(file, path);
  } else {
    join_writers(file);
  }
  keeper.store(this, std::memory_order_release);
  set_log_listener(&RunLogWriter::record_warning);
}

RunLogWriter::~RunLogWriter() {
  RunLogWriter* self = this;
  keeper.compare_exchange_strong(self, nullptr);
}

void RunLogWriter::record_warning(const Said& said) noexcept {
  RunLogWriter* const log = keeper.load(std::memory_order_acquire);
  if (log == nullptr || !log->enabled() || !log->keeps_warnings_.load(std::memory_order_relaxed)) return;
  RunLogLine line(run_log::warning::line);
  line.add(run_log::warning::cause, std::string(said.row.id))
      .append(run_log::every::message.name, std::string(said.text));
  std::string_view rest = said.row.sentence;
  for (const CauseValue& value : said.values) {
    if (const std::string key = key_of(take_piece(&rest)); !key.empty()) line.append(key.c_str(), value.number);
  }
  log->write(line);
}

void RunLogWriter::write(RunLogText& line) noexcept {
  if (!enabled()) return;
  // The time tells the report when a plan came in force and when it ended.
  const uint64_t now = now_ns();
  line.append(run_log::every::at_ns.name, now);
  line.append(run_log::every::process.name, process_);
  const std::lock_guard lock(mutex_);
  buffer_ += line.end();
  if (line.often_ && buffer_.size() < kWriteBytes && now < written_out_ns_ + kWriteNs) return;
  written_out_ns_ = now;
  write_out();
}

void RunLogWriter::write_on_demand(const run_log::Word<run_log::on_demand::Tag>& cause, const std::string& reason,
                                   uint64_t plan) noexcept {
  if (!enabled()) return;
  RunLogLine line(run_log::on_demand::line);
  line.add(run_log::on_demand::cause, cause).add(run_log::on_demand::reason, reason);
  if (plan != kNoPlan) line.add(run_log::on_demand::plan, plan);
  write(line);
}

void RunLogWriter::flush() noexcept {
  if (!enabled()) return;
  const std::lock_guard lock(mutex_);
  write_out();
}

void RunLogWriter::write_out() noexcept {
  size_t written = 0;
  const FileLimitGuard guard;
  while (written < buffer_.size()) {
    const ssize_t result = ::write(file_.load(), buffer_.data() + written, buffer_.size() - written);
    if (result < 0 && errno == EINTR) continue;
    if (result <= 0) {
      const int why = errno;
      close(file_.exchange(-1));  // before it is told: what is told goes to the log, too
      say<Cause::run_log_incomplete>(std::strerror(why));
      break;
    }
    written += static_cast<size_t>(result);
  }
  buffer_.clear();
}

// The parent may have been forked while another thread held the lock: only the file's number is touched.
void RunLogWriter::abandon() noexcept { file_.store(-1); }

// In texts quotes are escaped, so that this is found as a key alone.
bool RunLogWriter::has_others(const char* path) const noexcept {
  if (!enabled()) return false;
  struct stat file {};
  if (stat(path, &file) != 0 || !S_ISREG(file.st_mode)) return false;  // a pipe has no end before ours
  try {
    const std::string key = std::string("\"").append(run_log::every::process.name).append("\":");
    std::ifstream log(path);
    for (std::string line; std::getline(log, line);) {
      const size_t at = line.rfind(key);
      if (at == std::string::npos) continue;
      if (std::strtoull(line.c_str() + at + key.size(), nullptr, 10) != process_) return true;
    }
  } catch (...) {  // out of memory
  }
  return false;
}

uint64_t RunLogWriter::now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace reprise::replay
