// A file that a run writes, while its program runs or behind it, is this run's alone until its report is made: another
// run that would write it is refused before its program starts. Caller: session.
#pragma once
#include <memory>
#include <string>

#include "preload/trace/status.h"

namespace reprise::tools {

// Held as long as it lives, and no longer than the process: nothing is left behind, however that ends.
class Claim {
 public:
  // `option` and `path` as the user gave them, for the error's line. The file need not exist yet. busy: another process
  // has it.
  static Result<std::shared_ptr<const Claim>> of(const std::string& option, const std::string& path);
  explicit Claim(int socket) noexcept : socket_(socket) {}
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  const int socket_;
};

}  // namespace reprise::tools
