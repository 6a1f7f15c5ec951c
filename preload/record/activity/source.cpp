#include "preload/record/activity/source.h"

#include <cstring>

#include "preload/record/activity/sources.h"

namespace reprise {

ActivitySource* choose_activity_source(const char* wanted) noexcept {
  struct Candidate {
    const char* name;
    ActivitySource* (*make)() noexcept;
  };
  // In order of preference.
  static constexpr Candidate kCandidates[] = {
      {"sim", simulated_activity_source},
      {"cupti", cupti_activity_source},
      {"events", event_activity_source},
  };
  const char* name = wanted != nullptr && wanted[0] != '\0' ? wanted : "auto";
  const bool any = std::strcmp(name, "auto") == 0;
  for (const Candidate& candidate : kCandidates) {
    if (!any && std::strcmp(name, candidate.name) != 0) continue;
    ActivitySource* source = candidate.make();
    if (source != nullptr && (source->running() || source->start())) return source;
  }
  return nullptr;
}

}  // namespace reprise
