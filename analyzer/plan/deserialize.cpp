// Bytes to plan. Runs in the victim process, too: whatever the bytes are, the answer is a Status, never an exception.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>

#include "analyzer/plan/codec.h"
#include "analyzer/plan/plan.h"
#include "preload/files/system_words.h"
#include "preload/trace/signature.h"

namespace reprise::plan {
namespace {

Status corrupt(const char* what) { return {StatusCode::corrupt, std::string("not a valid plan: ") + what}; }

Result<Plan> decode(const std::string& bytes) {
  PlanHeader header{};
  if (bytes.size() < sizeof header) return Status{StatusCode::truncated, "not a valid plan: shorter than its header"};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kPlanMagic, sizeof header.magic) != 0) return corrupt("no plan file at all");
  if (header.version != kPlanVersion) {
    return Status{StatusCode::unsupported, "plan has version " + std::to_string(header.version) +
                                               ", this build reads " + std::to_string(kPlanVersion) +
                                               "; make it again"};
  }
  if (header.reserved != 0) return corrupt("its header has unknown bits");
  const size_t payload_bytes = bytes.size() - sizeof header;
  if (header.payload_bytes > payload_bytes) return Status{StatusCode::truncated, "not a valid plan: it ends early"};
  if (header.payload_bytes < payload_bytes) return corrupt("bytes after its end");
  const char* payload = bytes.data() + sizeof header;
  if (trace::hash_bytes(payload, payload_bytes) != header.checksum) return corrupt("its checksum does not match");

  Plan plan;
  Decoder decoder(payload, payload_bytes);
  plan_fields(decoder, plan);
  if (!decoder.ok() || decoder.left() != 0) return corrupt("its fields do not fit its size");
  if (Status status = check_structure(plan); !status.ok()) return status;
  return plan;
}

Result<std::string> read_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    const StatusCode code = errno == ENOENT ? StatusCode::not_found : StatusCode::io_error;
    return Status{code, "cannot open plan " + path + ": " + system_words(errno)};
  }
  struct stat info {};
  std::string bytes;
  Status status;
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    status = Status{StatusCode::io_error, "cannot read plan " + path + ": not a regular file"};
  } else {
    bytes.resize(static_cast<size_t>(info.st_size));
  }
  size_t done = 0;
  while (status.ok() && done < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = Status{StatusCode::io_error, "cannot read plan " + path + ": " + std::strerror(errno)};
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  ::close(file);
  if (!status.ok()) return status;
  bytes.resize(done);
  return bytes;
}

}  // namespace

Result<Plan> deserialize(const std::string& bytes) {
  try {
    return decode(bytes);
  } catch (const std::exception&) {  // bad_alloc, length_error
    return Status{StatusCode::io_error, "not enough host memory to read the plan"};
  }
}

Result<Plan> read_plan(const std::string& path) {
  try {
    Result<std::string> bytes = read_file(path);
    if (!bytes.ok()) return bytes.status();
    Result<Plan> plan = decode(bytes.value());
    if (!plan.ok()) return Status{plan.status().code(), path + ": " + plan.status().message()};
    return plan;
  } catch (const std::exception&) {
    return Status{StatusCode::io_error, "not enough host memory to read the plan"};
  }
}

}  // namespace reprise::plan
