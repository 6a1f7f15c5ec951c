// Reads a whole trace into memory. Callers: the analyzer and the command line; never the victim process.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "preload/trace/format.h"
#include "preload/trace/status.h"

namespace reprise::trace {

struct TracedFunction {
  uint32_t id = 0;
  std::string name;  // mangled, as the driver says it
  std::vector<ParameterLayout> parameters;
  bool parameters_known = false;
  uint64_t identity = 0;  // of its code and parameters, in all programs; 0: not known
};

struct Allocate {
  AllocateRecord record;
};
struct Free {
  FreeRecord record;
};
struct Op {
  OpRecord record;
  std::vector<AccessRecord> accesses;
  std::vector<uint8_t> parameters;
};
struct Order {
  OrderRecord record;
};
struct Mark {
  MarkRecord record;
  std::string text;
};
using Event = std::variant<Allocate, Free, Op, Order, Mark>;

struct Trace {
  std::unordered_map<std::string, std::string> info;  // InfoRecord lines
  std::vector<TracedFunction> functions;              // index = id - 1
  std::vector<std::string> call_sites;                // index = id - 1
  std::vector<StreamRecord> streams;
  std::vector<Event> events;                                // ordered by sequence
  std::unordered_map<uint64_t, ActivityRecord> activities;  // by the op's sequence
  std::vector<GapRecord> gaps;                              // where records are missing
  std::vector<GapRecord> pauses;                            // where nothing was to be recorded
  bool ended = false;                                       // an EndRecord was read
  uint64_t dropped = 0;                                     // as the EndRecord says
  uint64_t unknown = 0;                                     // records of a kind that this build does not know, skipped
  Status tail;  // not ok: where and why reading stopped before the end of the file
};

uint64_t sequence_of(const Event& event);

// The function of an op, or nullptr for id 0 and for an id whose record is missing (a trace cut short).
const TracedFunction* find_function(const Trace& trace, uint32_t id);

// Reads `path`. A file that ends early or has a bad chunk gives the readable part and says so in Trace::tail; a file
// that is no trace, or of an unknown version, is an error.
Result<Trace> read_trace(const std::string& path);
// The same for the bytes of a file; `name` stands for it in messages.
Result<Trace> parse_trace(std::string_view bytes, const std::string& name);

// One line per record, the text form that tests compare and `reprise dump` prints.
std::string to_text(const Trace& trace);

}  // namespace reprise::trace
