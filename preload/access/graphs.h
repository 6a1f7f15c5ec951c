// What an instantiated graph touches when it is launched: read from its nodes when it is made. A graph with a node that
// cannot be read is opaque. Callers: graph hooks, barriers (calls that update a graph).
#pragma once
#include <cuda.h>

#include "preload/access/command_builder.h"

namespace reprise {

// Reads the nodes of `graph`, of which `executable` was made or to which it was updated. Answers how many of them
// allocate memory.
uint32_t record_graph(CUgraphExec executable, CUgraph graph) noexcept;

// Something in the graph changed: its launches are opaque from now on.
void forget_graph_accesses(CUgraphExec executable) noexcept;

// The instantiated graph is destroyed.
void forget_graph(CUgraphExec executable) noexcept;

// Adds what a launch touches; flags the command opaque where that is not known. Where it is, the signature says what
// the graph is made of; tables of pointers are left to the caller (pointees.h).
void touch_graph(CommandBuilder& builder, CUgraphExec executable) noexcept;

// How many accesses touch_graph() may add; more make the launch opaque.
inline constexpr uint32_t kMaxGraphAccesses = 1024;

}  // namespace reprise
