// Checks that may end the context or the process they run in, so each runs as `reprise-probe --check NAME`, called by a
// section through run_command(). Prints one line of JSON. Caller: main.
#pragma once
#include <string>

namespace reprise::probe {

// Exit code of the process: 0 printed an answer, 1 could not, 2 no such check, 3 no device.
int run_single_check(const std::string& name, int device);

}  // namespace reprise::probe
