// What trace values are called when people read them. Callers: the text dump, reports, exports; never the victim
// process.
#pragma once
#include <string>
#include <string_view>

#include "preload/trace/format.h"

namespace reprise::trace {

// "launch", "copy_host_to_device", ... A value that no enumerator has is "unknown".
std::string_view name_of(OpKind kind);
std::string_view name_of(OrderKind kind);
// The driver call that allocated: "cuMemAlloc", ...
std::string_view name_of(Origin origin);

// A mangled kernel name without template and function arguments: "at::native::reduce_kernel". What is not a mangled
// name is returned as it is.
std::string short_name(const std::string& mangled);

// As a part of a line: control characters must break neither it nor the terminal.
std::string escaped(const std::string& text);
// The short name of a kernel, in a message or another line.
std::string shown_name(const std::string& mangled);

}  // namespace reprise::trace
