// A file that a run of `reprise` writes is this run's alone while it lasts. Its claim is a socket of the abstract
// namespace (unix(7)): it goes with the process that has bound it, and takes no file, as the file itself is removed and
// made anew, so a lock of it would be one of something else. Callers: the launcher, which claims, and the configuration
// of the preloaded library, which looks.
#pragma once
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>

namespace reprise {

struct ClaimAddress {
  sockaddr_un address = {};
  socklen_t bytes = 0;
};

// Of the file by whatever name, which need not exist yet.
ClaimAddress claim_address(const std::string& path);

// The process that has claimed it; 0: one whose number cannot be told. Where there are no sockets, nobody has.
std::optional<pid_t> claimant_of(const std::string& path);

}  // namespace reprise
