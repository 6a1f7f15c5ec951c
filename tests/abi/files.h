// Reads what abi_test compares: symbol tables through nm and readelf, function names and versions from CUDA's headers.
#pragma once
#include "tests/support/test.h"

namespace reprise::abi {

// Standard output of a command, line by line.
std::vector<std::string> lines_of(const std::string& command);

// Names that a shared library defines for others.
std::set<std::string> exported_symbols(const std::string& library);

// Values of one kind of entry in a library's dynamic section: NEEDED, SONAME.
std::vector<std::string> dynamic_entries(const std::string& library, const std::string& kind);

// What a library needs of others: symbol -> its version, of those whose version begins so ("2.2.5" behind "GLIBC_").
std::map<std::string, std::string> needed_versions(const std::string& library, const std::string& prefix);

// Every symbol that a program compiled with these headers can refer to: functions declared, under all the names that
// the headers' own macros give them. `linkage`: what stands before the name of each.
std::set<std::string> declared_functions(const std::string& folder, const std::vector<std::string>& headers,
                                         const std::string& linkage = "CUDAAPI");

// The parameters of every function that the headers declare, as they stand there ("CUstream hStream"), by symbol: where
// a macro gives a name to a newer form, the declaration is that form's.
std::map<std::string, std::vector<std::string>> declared_parameters(const std::string& folder,
                                                                    const std::vector<std::string>& headers,
                                                                    const std::string& linkage = "CUDAAPI");

// cudaTypedefs.h: (base name, "" or "_ptsz" or "_ptds") -> versions of its forms, ascending.
std::map<std::pair<std::string, std::string>, std::set<int>> typedef_versions(const std::string& header);

// "cuMemAlloc_v2" -> {"cuMemAlloc", 2, ""}; "cuMemcpy_ptds" -> {"cuMemcpy", 1, "_ptds"}.
struct SymbolName {
  std::string base;
  int form;
  std::string suffix;
};
SymbolName split(const std::string& symbol);

}  // namespace reprise::abi
