// Which Reprise this is. The values are made at each build (tools/build/cmake/version.cmake). Callers: main, the man
// pages.
#pragma once
#include <string>

namespace reprise::tools {

struct Version {
  const char* number;
  const char* commit;  // 12 hexadecimal digits; "" where it is not known
  const char* date;    // of the commit, as 2026-11-23
  bool changed;        // files differ from the commit
};
extern const Version kVersion;

// "0.1.0 (4b5ac9c1f0aa, 2026-11-23)"
inline std::string version_text() {
  const std::string number = kVersion.number;
  if (*kVersion.commit == '\0') return number + " (commit unknown)";
  return number + " (" + kVersion.commit + (kVersion.changed ? " with changes, " : ", ") + kVersion.date + ")";
}

}  // namespace reprise::tools
