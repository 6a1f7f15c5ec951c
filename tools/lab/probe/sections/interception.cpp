// Section 1: does a library that calls itself libcuda.so.1 see everything? Compares the addresses that cuGetProcAddress
// gives with those of dlsym, and launches counted by such a library with the kernels that CUPTI recorded; and puts it
// into a program under cuda-gdb.
#include <dlfcn.h>

#include <map>
#include <regex>
#include <set>

#include "tools/lab/probe/output/section.h"
#include "tools/lab/probe/subjects/counted_programs.h"
#include "tools/lab/probe/subjects/debugged_program.h"
#include "tools/lab/probe/subjects/elf_exports.h"

namespace reprise::probe {
namespace {

// cuMemcpyHtoDAsync_v2_ptsz -> cuMemcpyHtoDAsync
std::string base_name(const std::string& exported) {
  static const std::regex suffixes("(_v[0-9]+)?(_ptsz|_ptds)?$");
  return std::regex_replace(exported, suffixes, "", std::regex_constants::format_first_only);
}

struct Addresses {
  size_t asked = 0;
  size_t same = 0;
  Json differing = Json::array();  // an address that dlsym gives for no version of the name
  Json unknown = Json::array();    // exported, but cuGetProcAddress does not know the name
};

Addresses compare_addresses(const Driver& driver, const std::map<std::string, std::set<void*>>& exported, int version,
                            cuuint64_t flags) {
  Addresses result;
  for (const auto& [base, addresses] : exported) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    ++result.asked;
    if (driver.cuGetProcAddress(base.c_str(), &address, version, flags, &found) != CUDA_SUCCESS || !address) {
      result.unknown.push_back(base);
    } else if (addresses.count(address)) {
      ++result.same;
    } else {
      result.differing.push_back(base);
    }
  }
  return result;
}

Status addresses(SectionContext& context) {
  const auto names = read_exports(context.driver.path);
  if (!names.ok()) return names.status();
  std::map<std::string, std::set<void*>> exported;
  size_t count = 0;
  for (const std::string& name : names.value()) {
    if (!name.starts_with("cu") || name.size() < 3 || name[2] < 'A' || name[2] > 'Z') continue;
    ++count;
    if (void* address = dlsym(context.driver.library, name.c_str())) exported[base_name(name)].insert(address);
  }
  int version = 0;
  PROBE_CALL(context.driver, cuDriverGetVersion, &version);
  context.report.fact("driver functions exported", count);
  const std::pair<const char*, cuuint64_t> kinds[] = {
      {"legacy stream", CU_GET_PROC_ADDRESS_LEGACY_STREAM},
      {"per-thread stream", CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM}};
  for (const auto& [kind, flags] : kinds) {
    const Addresses result = compare_addresses(context.driver, exported, version, flags);
    context.report.fact(std::string("cuGetProcAddress = dlsym, ") + kind,
                        Json{{"names", result.asked},
                             {"same", result.same},
                             {"differing", result.differing},
                             {"unknown_to_cuGetProcAddress", result.unknown}});
  }
  return Status::success();
}

}  // namespace

void measure_interception(SectionContext& context) {
  attempt(context, "addresses", addresses);
  attempt(context, "cuda-gdb", report_debugger);
  attempt(context, "launches", report_parity);
}

}  // namespace reprise::probe
