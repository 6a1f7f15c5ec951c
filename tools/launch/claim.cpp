#include "tools/launch/claim.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <system_error>

#include "tools/cli/files.h"

namespace reprise::tools {
namespace {

// A socket of the abstract namespace (unix(7)) goes with the process that has bound it, and takes no file: the file
// itself is removed and made anew, so a lock of it would be one of something else.
sockaddr_un address_of(const std::string& path, socklen_t* bytes) {
  std::error_code error;
  std::filesystem::path file = std::filesystem::weakly_canonical(absolute_path(path), error);
  if (error) file = path;
  const std::string name = fmt::format("reprise-{}-{:016x}", getuid(), std::hash<std::string>{}(file.string()));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  *bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

// " (process 17)" where it can be told.
std::string whoever_has(const sockaddr_un& address, socklen_t bytes) {
  const int asking = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ucred owner{};
  socklen_t size = sizeof owner;
  const bool known = connect(asking, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 &&
                     getsockopt(asking, SOL_SOCKET, SO_PEERCRED, &owner, &size) == 0;
  if (asking >= 0) close(asking);
  return known ? fmt::format(" (process {})", owner.pid) : "";
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

Status refused(const std::string& option, const std::string& path, const std::string& who) {
  return {StatusCode::invalid_argument,
          fmt::format("{} {}: another run is writing it{}; wait for its end, or name another file", option, path, who)};
}

}  // namespace

Claim::~Claim() {
  if (socket_ >= 0) close(socket_);
}

Result<std::shared_ptr<const Claim>> Claim::of(const std::string& option, const std::string& path) {
  socklen_t bytes = 0;
  const sockaddr_un address = address_of(path, &bytes);
  const auto claim = std::make_shared<const Claim>(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Where there are no sockets, two runs are not told apart.
  if (claim->socket_ >= 0 && bind(claim->socket_, reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    if (errno == EADDRINUSE) return refused(option, path, whoever_has(address, bytes));
  } else if (claim->socket_ >= 0) {
    listen(claim->socket_, 1);
  }
  if (program_writes(path)) return refused(option, path, "");
  return claim;
}

}  // namespace reprise::tools
