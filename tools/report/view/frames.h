// Frames of recorded call stacks, innermost first, one a line: which one asked for an allocation, and how it is called
// in a title. Called by the table of tensors, the advice and the page.
#pragma once
#include <set>
#include <string>

#include "preload/trace/reader.h"

namespace reprise::report {

// The function of a frame: without its line and its module.
std::string function_of(const std::string& frame);

// The driver's, the runtime's, or an allocator's on top of them: not the program's own.
bool is_foreign(const std::string& frame);
// How `export --redact` calls such functions, which are as foreign without their names; no function's name has a '-'.
inline constexpr char kForeign[] = "outside-";

// Functions of the program that merely pass allocations on, for several callers: (nearly) all allocations of the device
// go through one, or nothing is launched below it. Behind it may be another one.
std::set<std::string> passing_on(const trace::Trace& trace);

// The innermost frame of the program that asks for itself: not the driver's, the runtime's or an allocator's, nor a
// frame of `passing_on`.
std::string own_frame(const std::string& stack, const std::set<std::string>& passing_on = {});
// Shortens a frame for a title: without its file, and without parameters where those are long.
std::string short_frame(const std::string& frame);

}  // namespace reprise::report
