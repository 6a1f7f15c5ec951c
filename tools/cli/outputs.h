// Outputs of commands: that they can be written, and that none of them is a file which the same command reads or writes
// besides. Callers: all commands that write, before they do anything.
#pragma once
#include <string>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::tools {

// What a command reads and writes, by the names that the user gave.
class Outputs {
 public:
  // A file that is read. "" and what is no regular file are left out.
  Outputs& reads(const std::string& path);
  Outputs& reads(const std::vector<std::string>& paths);
  // What a program is given: files that its arguments name, and its standard input.
  Outputs& read_by_program(const std::vector<std::string>& arguments);
  // A file that will be written; `option` names it in messages. "" is none, "-" is stdout.
  Outputs& writes(const std::string& option, const std::string& path);
  // A file whose name is ours, not the user's: reserve_name() takes the next free one where there is such a file, so it
  // is never one that is read.
  Outputs& chooses(const std::string& path);
  // Ok when each output can be written, and none is an input or another output: the same path, the same file by a hard
  // or symbolic link.
  Status check() const;

 private:
  struct Output {
    std::string option;  // for messages
    std::string path;
    bool chosen;
    bool is_elsewhere() const;
  };
  Status check_inputs(const Output& output) const;
  Status check_others(size_t index) const;

  std::vector<std::string> inputs_;
  std::vector<Output> outputs_;
};

// Ok when `path` can be written: an existing file with permission, or a new one in a writable folder.
Status check_writable(const std::string& path);
// Pipes, terminals and /dev/null may be written by several: nothing in them is lost.
bool can_be_lost(const std::string& path);

}  // namespace reprise::tools
