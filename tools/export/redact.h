// What others may see of a recording: names of kernels, functions, files, marks and the command line become numbers,
// the same one for the same name in all files of one Redactor, and so do threads and processes; parameters of kernels
// go. Sizes, times, order, accesses and hashes stay. Caller: `reprise export --redact`, with the trace first, whose
// names the others' texts may quote.
#pragma once
#include <map>
#include <string>

#include "analyzer/plan/plan.h"
#include "preload/trace/reader.h"

namespace reprise::exports {

class Redactor {
 public:
  void redact(trace::Trace& trace);
  void redact(plan::Plan& plan);
  // The lines of a run log. Texts that quote names keep those of their words that our messages have.
  std::string redact_run_log(const std::string& lines);

 private:
  std::string number(const std::string& what, const std::string& name);
  std::string kernel(const std::string& name);
  std::string frame(const std::string& text);
  std::string call_site(const std::string& frames);
  std::string words(const std::string& text) const;
  std::string call(const std::string& text);
  void find_names(const std::string& lines);

  std::map<std::string, std::map<std::string, std::string>> numbers_;  // by sort and name
  std::map<uint32_t, uint32_t> threads_;  // a program's first thread has its process's number
  std::map<uint64_t, uint64_t> processes_;
  std::map<std::string, std::string> quoted_;  // names that texts may quote
};

}  // namespace reprise::exports
