// Help in plain words, where CLI11 has "TEXT:INT in [0 - 9]", "REQUIRED" and "files(1x)". Callers: the command line.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>

namespace reprise::tools {

std::shared_ptr<CLI::Formatter> make_help_formatter();

}  // namespace reprise::tools
