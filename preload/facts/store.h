// The cache of kernel facts: a folder, $XDG_CACHE_HOME/reprise/kernels, with one small file for each kernel and device.
// Several programs may use it at once: a file is replaced in one step, and what two of them find out adds up. Callers:
// the examiner, the planner, `reprise facts`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "preload/facts/facts.h"

namespace reprise::facts {

// `chosen` (REPRISE_FACTS) where there is one, else the cache folder of $XDG_CACHE_HOME, else of $HOME. Empty: neither
// is set.
std::string folder_of_facts(const char* chosen);
// Beside it: that of plans which are kept for a program's next run.
std::string folder_of_plans(const char* chosen);
// What is said then.
const char* why_no_facts() noexcept;

// In universal time, as evidence is dated: YYYY-MM-DD.
std::string today();

class Store {
 public:
  explicit Store(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const noexcept { return folder_; }
  // not_found: nothing is known of it. Another error: the file is not to be used, with its name and why.
  Result<KernelFacts> load(uint64_t kernel, const std::string& device) const;
  // Adds the evidence to what is there; a file that cannot be used is replaced. Makes the folder, and at its first call
  // removes what processes left there that were killed.
  Status add(const KernelFacts& more);
  Status remove(uint64_t kernel, const std::string& device) const;
  // Of all files, by name of the kernel. What cannot be used has a line in *problems.
  std::vector<KernelFacts> all(std::vector<std::string>* problems) const;

 private:
  std::string path_of(uint64_t kernel, const std::string& device) const;

  std::string folder_;
  bool tidied_ = false;
};

}  // namespace reprise::facts
