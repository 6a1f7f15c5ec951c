// What an earlier run left where this one shall write: it must not pass for the result of this one, and is not lost
// where nothing comes in its place. Callers: run, record and replay, before their program starts.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace reprise::tools {

class OldFiles {
 public:
  OldFiles() = default;
  ~OldFiles();  // as settle(), without a word: the command says why it failed
  OldFiles(const OldFiles&) = delete;
  OldFiles& operator=(const OldFiles&) = delete;
  // Renames a regular file beside itself, so that it survives if this process is killed. Ignores "".
  void set_aside(const std::string& path);
  // When all is written, and before a caller ends by a signal: what was replaced goes, the rest gets its name back, and
  // a line says so.
  void settle();

 private:
  std::vector<std::string> give_back();
  std::vector<std::pair<std::string, std::string>> aside_;  // its own name, and the one that it has meanwhile
};

// Behind a line that says what was not written: that the file which was there, if there was one, is as it was.
std::string about_old_file(const std::string& path);

}  // namespace reprise::tools
