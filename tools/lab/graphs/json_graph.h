// Reads a TaskGraph from JSON: tensors and kernels of one iteration, in execution order, on one or several devices.
// docs/FORMAT.md has the form. Callers: `reprise plan`, `reprise simulate`, bench/.
#pragma once
#include <string>
#include <string_view>

#include "analyzer/taskgraph/graph.h"
#include "preload/trace/status.h"

namespace reprise::tools {

// Bytes of a chunk where no option says otherwise.
inline constexpr uint64_t kGraphChunk = uint64_t{2} << 20;

// By the name: .json or .json.zst.
bool is_graph_path(const std::string& path);

// Errors name the file, the item and what is wrong with it.
Result<analyzer::TaskGraph> read_graph(const std::string& path, uint64_t chunk_bytes);
// The same for the text of a file.
Result<analyzer::TaskGraph> parse_graph(std::string_view text, uint64_t chunk_bytes);

}  // namespace reprise::tools
