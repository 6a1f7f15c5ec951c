#include "preload/files/claims.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace reprise {
namespace {

std::string real_path(const std::string& path) {
  char* const real = ::realpath(path.c_str(), nullptr);
  std::string text = real != nullptr ? real : "";
  std::free(real);
  return text;
}

// A file that does not exist yet is a name in a folder that does.
std::string place_of(const std::string& path) {
  std::string place = real_path(path);
  if (!place.empty()) return place;
  const size_t slash = path.rfind('/');
  place = real_path(slash == std::string::npos ? "." : path.substr(0, slash + 1));
  if (place.empty()) return path;
  if (place.back() != '/') place += '/';
  return place + path.substr(slash + 1);
}

}  // namespace

ClaimAddress claim_address(const std::string& path) {
  ClaimAddress claim;
  claim.address.sun_family = AF_UNIX;
  char* const name = claim.address.sun_path + 1;
  const int length = std::snprintf(name, sizeof claim.address.sun_path - 1, "reprise-%lu-%016llx",
                                   static_cast<unsigned long>(getuid()),
                                   static_cast<unsigned long long>(std::hash<std::string>{}(place_of(path))));
  claim.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  return claim;
}

std::optional<pid_t> claimant_of(const std::string& path) {
  const ClaimAddress claim = claim_address(path);
  const int asking = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (asking < 0) return {};
  ucred owner{};
  socklen_t size = sizeof owner;
  const bool answered = connect(asking, reinterpret_cast<const sockaddr*>(&claim.address), claim.bytes) == 0;
  const bool claimed = answered || errno == EAGAIN;  // it answers nobody, and so many have asked
  if (answered && getsockopt(asking, SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0) owner.pid = 0;
  close(asking);
  if (!claimed) return {};
  return owner.pid;
}

}  // namespace reprise
