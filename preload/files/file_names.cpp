#include "preload/files/file_names.h"

#include <unistd.h>

namespace reprise {
namespace {

using Lookup = std::function<const char*(const char* variable)>;

constexpr const char* kRanks[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};

std::string rank_of(const Lookup& lookup) {
  for (const char* name : kRanks) {
    const char* const value = lookup(name);
    if (value == nullptr || *value == '\0') continue;
    if (std::string_view(value).find_first_not_of("0123456789") == std::string_view::npos) return value;
  }
  return "0";
}

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "localhost";
  return name;
}

}  // namespace

std::string expanded_name(std::string_view name, const Lookup& lookup, int process) {
  std::string result;
  for (size_t i = 0; i < name.size(); ++i) {
    const char next = name[i] == '%' && i + 1 < name.size() ? name[i + 1] : '\0';
    if (next == 'r') {
      result += rank_of(lookup);
    } else if (next == 'p') {
      result += std::to_string(process);
    } else if (next == 'h') {
      result += host_name();
    } else if (next == '%') {
      result += '%';
    } else {
      result += name[i];
      continue;
    }
    ++i;
  }
  return result;
}

std::string protected_name(std::string_view name) {
  std::string result;
  for (const char letter : name) result.append(letter == '%' ? 2 : 1, letter);
  return result;
}

}  // namespace reprise
