#include "tools/report/symbols/symbols.h"

#include <cxxabi.h>
#include <fmt/core.h>
#include <gelf.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <unordered_map>

#include "preload/trace/identity.h"
#include "tools/report/symbols/libdw.h"

namespace reprise::report {
namespace {

std::string plain(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = text != nullptr ? text : name;
  std::free(text);
  return result;
}

// The parts of a frame as it was recorded. No name: the offset is from where the file is loaded.
struct Recorded {
  std::string name;
  uint64_t offset = 0;
  std::string module;
};

bool parse(const std::string& text, Recorded& frame) {
  const size_t open = text.rfind(" (");
  if (open == std::string::npos || text.back() != ')') return false;
  frame.module = text.substr(open + 2, text.size() - open - 3);
  const std::string place = text.substr(0, open);
  const size_t hex = place.rfind("0x");
  if (hex == std::string::npos) return false;
  if (hex > 0 && place[hex - 1] != '+') return false;
  if (hex > 0) frame.name = place.substr(0, hex - 1);
  frame.offset = std::strtoull(place.c_str() + hex, nullptr, 16);
  return true;
}

std::string base_name(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

std::string build_id_of(Dwfl_Module* module) {
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  const int size = libdw()->dwfl_module_build_id(module, &bits, &address);
  std::string text;
  for (int i = 0; i < size; ++i) text += fmt::format("{:02x}", bits[i]);
  return text;
}

std::string info(const trace::Trace& trace, const char* key) {
  const auto found = trace.info.find(key);
  return found == trace.info.end() ? std::string() : found->second;
}

// A program without a build id is known again by all of its content, which the trace has a hash of. Empty: the frame's
// file is not the program, or the program has been built anew. The trace has no such hash of libraries.
std::string unchanged_program(const trace::Trace& trace, const std::string& module) {
  const std::string path = info(trace, "program.path");
  const std::string command = info(trace, "program");
  const std::string started_as = command.substr(0, command.find(' '));
  if (module != base_name(path.c_str()) && module != base_name(started_as.c_str())) return {};
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return {};  // a trace may name what has no end
  const uint64_t hash = trace::program_identity(path.c_str());
  char text[17];
  trace::format_identity(hash, text);
  return hash != 0 && info(trace, "program.hash") == text ? path : std::string();
}

const Dwfl_Callbacks* callbacks() {
  static char* no_debug_path = nullptr;
  static const Dwfl_Callbacks table = {libdw()->dwfl_build_id_find_elf, libdw()->dwfl_standard_find_debuginfo, nullptr,
                                       &no_debug_path};
  return &table;
}

}  // namespace

// One file, opened when its first frame comes.
struct Symbolizer::Module {
  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;  // nullptr: it is not the file that was loaded
  GElf_Addr low = 0;              // where its first segment begins, by its own addresses
  std::unordered_map<std::string, GElf_Addr> symbols;
  bool lines = false;

  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module() {
    if (dwfl != nullptr) libdw()->dwfl_end(dwfl);
  }

  bool open(const std::string& path, const std::string& build_id) {
    if (dwfl != nullptr) libdw()->dwfl_end(dwfl);
    module = nullptr;
    dwfl = libdw()->dwfl_begin(callbacks());
    if (dwfl == nullptr) return false;
    libdw()->dwfl_report_begin(dwfl);
    Dwfl_Module* const found = libdw()->dwfl_report_elf(dwfl, path.c_str(), path.c_str(), -1, 0, true);
    libdw()->dwfl_report_end(dwfl, nullptr, nullptr);
    if (found == nullptr) return false;
    GElf_Addr bias = 0;
    if (libdw()->dwfl_module_getelf(found, &bias) == nullptr || build_id_of(found) != build_id) return false;
    libdw()->dwfl_module_info(found, nullptr, &low, nullptr, nullptr, nullptr, nullptr, nullptr);
    module = found;
    Dwarf_Addr dwarf_bias = 0;
    lines = libdw()->dwfl_module_getdwarf(found, &dwarf_bias) != nullptr &&
            libdw()->dwfl_module_nextcu(found, nullptr, &dwarf_bias);
    if (lines) read_symbols();
    return true;
  }

  // Where named frames count from. A file without line information yields names only.
  void read_symbols() {
    const int count = libdw()->dwfl_module_getsymtab(module);
    for (int i = 1; i < count; ++i) {
      GElf_Sym symbol{};
      GElf_Addr address = 0;
      const char* const name =
          libdw()->dwfl_module_getsym_info(module, i, &symbol, &address, nullptr, nullptr, nullptr);
      if (name != nullptr && GELF_ST_TYPE(symbol.st_info) == STT_FUNC) symbols.emplace(name, address);
    }
  }

  // The byte before a return address: the call may be the function's last instruction.
  std::string line_at(GElf_Addr address) const {
    if (!lines) return {};
    Dwfl_Line* const line = libdw()->dwfl_module_getsrc(module, address - 1);
    int number = 0;
    const char* const file =
        line == nullptr ? nullptr : libdw()->dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
    return file == nullptr || number == 0 ? std::string() : fmt::format(" at {}:{}", base_name(file), number);
  }
};

Symbolizer::Symbolizer(const trace::Trace& trace) : trace_(trace) {
  unsetenv("DEBUGINFOD_URLS");  // nothing is fetched from anywhere
}

Symbolizer::~Symbolizer() = default;

Symbolizer::Module* Symbolizer::module(const std::string& name) {
  const auto [at, added] = modules_.try_emplace(name);
  if (!added || libdw() == nullptr) return at->second.get();
  auto opened = std::make_unique<Module>();
  if (const auto said = trace_.info.find("module." + name); said != trace_.info.end()) {
    const size_t space = said->second.find(' ');
    if (space == std::string::npos || space < 4) return nullptr;
    const std::string build_id = said->second.substr(0, space);
    const std::string debug =
        fmt::format("/usr/lib/debug/.build-id/{}/{}.debug", build_id.substr(0, 2), build_id.substr(2));
    if (!opened->open(said->second.substr(space + 1), build_id) && !opened->open(debug, build_id)) return nullptr;
  } else if (const std::string path = unchanged_program(trace_, name); path.empty() || !opened->open(path, "")) {
    return nullptr;
  }
  at->second = std::move(opened);
  return at->second.get();
}

std::string Symbolizer::frame(const std::string& text) {
  const auto [at, added] = known_.try_emplace(text, text);
  Recorded recorded;
  if (!added || !parse(text, recorded)) return at->second;
  std::string name = plain(recorded.name);
  std::string line;
  if (const Module* const found = module(recorded.module); found != nullptr) {
    GElf_Addr address = found->low + recorded.offset;
    const auto symbol = found->symbols.find(recorded.name);
    if (recorded.name.empty()) {
      const char* const known = libdw()->dwfl_module_addrname(found->module, address - 1);
      if (known != nullptr) name = plain(known);
      line = found->line_at(address);
    } else if (symbol != found->symbols.end()) {
      line = found->line_at(symbol->second + recorded.offset);
    }
  }
  if (name.empty()) return at->second;
  return at->second = fmt::format("{}{} ({})", name, line, recorded.module);
}

bool can_symbolize() { return libdw() != nullptr; }

void symbolize(trace::Trace& trace) {
  Symbolizer symbols(trace);
  for (std::string& site : trace.call_sites) {
    std::istringstream frames(site);
    std::string result;
    for (std::string frame; std::getline(frames, frame);) {
      if (!result.empty()) result += '\n';
      result += symbols.frame(frame);
    }
    site = std::move(result);
  }
}

}  // namespace reprise::report
