// Plan to bytes, and to a file that is replaced atomically.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "analyzer/plan/codec.h"
#include "analyzer/plan/plan.h"
#include "preload/files/system_words.h"
#include "preload/trace/signature.h"

namespace reprise::plan {
namespace {

Status system_error(const std::string& what, const std::string& path) {
  return {StatusCode::io_error, what + " " + path + ": " + system_words(errno)};
}

Status write_all(int file, const std::string& bytes, const std::string& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(file, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return system_error("cannot write plan", path);
    done += static_cast<size_t>(wrote);
  }
  return {};
}

// Memory of another process, say: there is nothing to rename.
bool has_no_name(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 0;
}

}  // namespace

std::string serialize(const Plan& plan) {
  Encoder encoder;
  plan_fields(encoder, plan);
  const std::string payload = encoder.take();
  PlanHeader header{};
  std::memcpy(header.magic, kPlanMagic, sizeof header.magic);
  header.version = kPlanVersion;
  header.payload_bytes = payload.size();
  header.checksum = trace::hash_bytes(payload.data(), payload.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes + payload;
}

Status write_plan(const Plan& plan, const std::string& path) {
  const std::string bytes = serialize(plan);
  // In the same folder, so that rename() replaces the old file in one step; the process id keeps two planners apart.
  const bool in_place = has_no_name(path);
  const std::string temporary = in_place ? path : path + "." + std::to_string(::getpid()) + ".tmp";
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return system_error("cannot create plan", path);
  Status status = write_all(file, bytes, path);
  if (::close(file) != 0 && status.ok()) status = system_error("cannot write plan", path);
  if (in_place) return status;
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = system_error("cannot replace plan", path);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace reprise::plan
