#include "preload/trace/names.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <memory>

namespace reprise::trace {
namespace {

// Drops everything in <> and in (), but for "(anonymous namespace)", which is part of the name.
std::string without_arguments(std::string_view text) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::string name;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (depth == 0 && text.substr(i, kAnonymous.size()) == kAnonymous) {
      name += kAnonymous;
      i += kAnonymous.size() - 1;
      continue;
    }
    const char character = text[i];
    if (character == '<' || character == '(') ++depth;
    if (depth == 0) name += character;
    if ((character == '>' || character == ')') && depth > 0) --depth;
  }
  return name;
}

}  // namespace

std::string_view name_of(OpKind kind) {
  switch (kind) {
    case OpKind::launch:
      return "launch";
    case OpKind::copy_host_to_device:
      return "copy_host_to_device";
    case OpKind::copy_device_to_host:
      return "copy_device_to_host";
    case OpKind::copy_device_to_device:
      return "copy_device_to_device";
    case OpKind::copy_host_to_host:
      return "copy_host_to_host";
    case OpKind::copy_peer:
      return "copy_peer";
    case OpKind::memset:
      return "memset";
    case OpKind::graph_launch:
      return "graph_launch";
    case OpKind::host_function:
      return "host_function";
    case OpKind::other:
      return "other";
  }
  return "unknown";
}

std::string_view name_of(OrderKind kind) {
  switch (kind) {
    case OrderKind::event_record:
      return "event_record";
    case OrderKind::event_wait:
      return "event_wait";
    case OrderKind::event_synchronize:
      return "event_synchronize";
    case OrderKind::event_query:
      return "event_query";
    case OrderKind::stream_synchronize:
      return "stream_synchronize";
    case OrderKind::stream_query:
      return "stream_query";
    case OrderKind::context_synchronize:
      return "context_synchronize";
  }
  return "unknown";
}

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::alloc:
      return "cuMemAlloc";
    case Origin::pitched:
      return "cuMemAllocPitch";
    case Origin::async:
      return "cuMemAllocAsync";
    case Origin::pool:
      return "cuMemAllocFromPoolAsync";
    case Origin::managed:
      return "cuMemAllocManaged";
    case Origin::host:
      return "cuMemHostAlloc";
    case Origin::global:
      return "global";
  }
  return "unknown";
}

std::string short_name(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0 || !demangled || mangled.rfind("_Z", 0) != 0) return mangled;
  std::string name = without_arguments(demangled.get());
  // Template functions demangle with their return type in front.
  const size_t space = name.find(' ');
  const bool anonymous = space != std::string::npos && name.compare(0, 10, "(anonymous") == 0;
  if (space != std::string::npos && !anonymous) name.erase(0, space + 1);
  return name.empty() ? mangled : name;
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '\n')
      safe += " < ";
    else if (code < 0x20 || code == 0x7f)
      fmt::format_to(std::back_inserter(safe), "\\x{:02x}", code);
    else
      safe += character;
  }
  return safe;
}

std::string shown_name(const std::string& mangled) { return escaped(short_name(mangled)); }

}  // namespace reprise::trace
