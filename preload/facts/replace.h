// Files that are replaced in one step by processes which may be killed at any time. Caller: the store.
#pragma once
#include <string>
#include <system_error>

namespace reprise::facts {

// While it is held, no other process changes the folder's files. A writer waits for it as long as others write. It
// goes on without the lock after a second in which none did: a process that was stopped while it held the folder must
// not stop others, and some file systems of networks lock no folders.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool held() const noexcept { return held_; }

 private:
  int folder_;
  bool held_ = false;
};

// Whoever reads the path finds what was there or the new content. A process that is killed in here leaves a second name
// beside it, PATH.PID, only where it replaces a file and dies between two system calls: see remove_left().
std::error_code replace_file(const std::string& path, const std::string& content);

// Removes what processes left that were killed while they replaced a file of this ending; under the folder's lock.
void remove_left(const std::string& folder, const std::string& ending);

}  // namespace reprise::facts
