// What `report` and `compare` have in common: files that are read, and the page that is written.
#pragma once
#include <string>
#include <vector>

#include "preload/trace/status.h"

namespace CLI {
class App;
}

namespace reprise::tools {

struct PageOptions {
  std::vector<std::string> files;
  std::string output;  // "": a free name beside the first file
  bool data_only = false;
  bool redact = false;  // of `report`
  std::string page() const;
};

void add_page_options(CLI::App& app, PageOptions& options);
// Ok when `page` can be written, and is none of the files that are read.
Status check_page(const PageOptions& options, const std::string& page);

// Are there two run logs or two plans among the files?
bool to_be_compared(const std::vector<std::string>& files);
// Returns the exit code.
int compare_files(const PageOptions& options);

}  // namespace reprise::tools
