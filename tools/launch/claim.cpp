#include "tools/launch/claim.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "preload/files/claims.h"
#include "tools/cli/files.h"

namespace reprise::tools {
namespace {

// By one name, though folders on the way may not be there.
std::string canonical(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::weakly_canonical(absolute_path(path), error);
  return error ? path : file.string();
}

// A program that has Reprise by LD_PRELOAD alone locks its files: a trace for itself (preload/start/entry.cpp), a run
// log with others (replay/base/run_log.cpp).
bool program_writes(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  const bool locked = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return locked;
}

// `who`: the process, 0 where it cannot be told.
Status refused(const std::string& option, const std::string& path, pid_t who) {
  return {StatusCode::invalid_argument, fmt::format("{} {}: another run is writing it{}", option, path,
                                                    who == 0 ? "" : fmt::format(" (process {})", who))};
}

}  // namespace

Claim::~Claim() {
  if (socket_ >= 0) close(socket_);
}

Result<std::shared_ptr<const Claim>> Claim::of(const std::string& option, const std::string& path) {
  const ClaimAddress address = claim_address(canonical(path));
  const auto claim = std::make_shared<const Claim>(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Where there are no sockets, two runs are not told apart.
  if (claim->socket_ >= 0 &&
      bind(claim->socket_, reinterpret_cast<const sockaddr*>(&address.address), address.bytes) != 0) {
    if (errno == EADDRINUSE) return refused(option, path, claimant_of(canonical(path)).value_or(0));
  } else if (claim->socket_ >= 0) {
    listen(claim->socket_, SOMAXCONN);  // only to hold the address: it never accepts
  }
  if (program_writes(path)) return refused(option, path, 0);
  return claim;
}

}  // namespace reprise::tools
