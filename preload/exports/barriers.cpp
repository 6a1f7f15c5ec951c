#include "preload/exports/barriers.h"

#include "preload/access/command_builder.h"
#include "preload/access/graphs.h"
#include "preload/base/runtime.h"
#include "preload/calls/handler.h"
#include "preload/tracking/streams.h"

namespace reprise {
namespace {

CUresult order(const Row& row) noexcept {
  Handler* const handler = runtime().handler;
  return handler == nullptr ? CUDA_SUCCESS : handler->order.before_ordered(row.symbol, needs_all_resident(row));
}

// Is the call captured rather than performed? Captures on other streams are no reason to leave it as it is.
bool captured(const Row& row, CUstream stream) noexcept {
  return row.stream != StreamArgument::no && capturing(stream);
}

}  // namespace

CUresult before_ordered(RowId id) noexcept { return order(row(id)); }

CUresult before_barrier(const Row& row, CUstream* stream, uint64_t first_argument) noexcept {
  const bool update = row.row_class == RowClass::graph_update;
  if (update) forget_graph_accesses(reinterpret_cast<CUgraphExec>(first_argument));
  // Work that is captured runs later, as part of a graph; the graph's nodes tell what it touches.
  if (!update && captured(row, *stream)) return CUDA_SUCCESS;
  if (const CUresult result = order(row); result != CUDA_SUCCESS) return result;
  if (row.row_class == RowClass::opaque) record_opaque(row.symbol);
  if (Handler* const handler = runtime().handler; *stream == CU_STREAM_PER_THREAD && handler != nullptr) {
    if (row.stream != StreamArgument::no) {
      *stream = handler->order.stand_in(*stream);
    } else if (row.row_class == RowClass::opaque) {
      handler->order.before_per_thread_call();
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace reprise
