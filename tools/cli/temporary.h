// What a command leaves behind only while it runs: private folders, and half-written outputs under another name. A
// signal that ends the command removes them first; the folder of a killed one is removed by its caretaker, or else by
// the next one. Callers: run, replay, doctor; files.cpp.
#pragma once
#include <memory>
#include <string>

#include "preload/trace/status.h"

namespace reprise::tools {

// The file, or the folder of files, is removed when a signal ends this process. Paths that are too many or too long are
// not kept in mind.
class RemovedWhenInterrupted {
 public:
  explicit RemovedWhenInterrupted(const std::string& path);
  ~RemovedWhenInterrupted();
  RemovedWhenInterrupted(const RemovedWhenInterrupted&) = delete;
  RemovedWhenInterrupted& operator=(const RemovedWhenInterrupted&) = delete;

 private:
  int slot_ = -1;
};

// A folder under TMPDIR that only this user can read, removed with its content at the end.
class TemporaryFolder {
 public:
  // `kept`: it stays, under a name that nothing removes.
  static Result<TemporaryFolder> create(bool kept = false);
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  TemporaryFolder(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  // Now, and not at the end: for callers that end by a signal.
  void remove();

 private:
  class Caretaker;
  TemporaryFolder(std::string path, int lock, bool kept);
  std::string path_;
  std::unique_ptr<RemovedWhenInterrupted> removal_;  // none of a folder that is kept
  std::unique_ptr<Caretaker> caretaker_;             // likewise
  int lock_ = -1;  // held for as long as this process lives, so that others see that the folder is in use
  bool kept_ = false;
};

}  // namespace reprise::tools
