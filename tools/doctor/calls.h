// `reprise doctor --calls`: what the preloaded library knows about each call of the driver, from hooks.def. Caller: the
// doctor command.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace reprise::tools {

// One line a call: its class, what it touches, whether everything has to be resident before it, the number of its
// stream parameter, the numbers of those that it writes on the host, what it waits for.
std::string calls_text();

// The same as a list of objects.
nlohmann::ordered_json calls_json();

}  // namespace reprise::tools
