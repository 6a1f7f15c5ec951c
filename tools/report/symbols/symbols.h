// Call sites as people know them: functions demangled, with file and line where the program's files have them. What was
// loaded when the stack was walked is found again by path and build id, a program without one by its content; other
// files of the same name are not used.
// Called when a report's inputs are examined.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "preload/trace/reader.h"

namespace reprise::report {

class Symbolizer {
 public:
  // The info of a trace: "module.NAME" is "BUILD_ID PATH"; "program", "program.path", "program.hash".
  explicit Symbolizer(const trace::Trace& trace);
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // "_Z1fv+0x12 (lib.so)" or "0x1234 (program)" becomes "f() at file.cpp:12 (lib.so)", as far as can be told.
  std::string frame(const std::string& text);

 private:
  struct Module;
  Module* module(const std::string& name);

  const trace::Trace& trace_;
  std::map<std::string, std::unique_ptr<Module>> modules_;
  std::map<std::string, std::string> known_;
};

// Is libdw here? Without it frames keep their offsets, and names are demangled only.
bool can_symbolize();

// Each frame of each call site.
void symbolize(trace::Trace& trace);

}  // namespace reprise::report
