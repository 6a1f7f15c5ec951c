#include "preload/exports/barriers.h"

#include "preload/access/command_builder.h"
#include "preload/access/graphs.h"
#include "preload/base/runtime.h"
#include "preload/calls/handler.h"
#include "preload/tracking/streams.h"

namespace reprise {

void before_ordered(const char* name) noexcept {
  if (Handler* handler = runtime().handler; handler != nullptr) handler->before_ordered(name);
}

void before_barrier(const Row& row, uint64_t first_argument) noexcept {
  const bool update = row.row_class == RowClass::graph_update;
  if (update) forget_graph_accesses(reinterpret_cast<CUgraphExec>(first_argument));
  // Work that is captured runs later, as part of a graph; the graph's nodes tell what it touches.
  if (any_capture() && !update) return;
  before_ordered(row.symbol);
  if (row.row_class == RowClass::opaque) record_opaque(row.symbol);
}

}  // namespace reprise
