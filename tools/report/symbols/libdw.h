// libdw, opened where it exists, as libunwind and Clp are (decision 0007): a report without it has no lines. Caller:
// the symbolizer.
#pragma once
#include <elfutils/libdwfl.h>

namespace reprise::report {

// What we use of it. A name that it lacks is as bad as no library.
#define REPRISE_LIBDW_FUNCTIONS(row)                                                                              \
  row(dwfl_begin) row(dwfl_end) row(dwfl_report_begin) row(dwfl_report_end) row(dwfl_report_elf)                  \
      row(dwfl_module_build_id) row(dwfl_module_getelf) row(dwfl_module_info) row(dwfl_module_getdwarf)           \
          row(dwfl_module_nextcu) row(dwfl_module_getsymtab) row(dwfl_module_getsym_info) row(dwfl_module_getsrc) \
              row(dwfl_module_addrname) row(dwfl_lineinfo) row(dwfl_build_id_find_elf)                            \
                  row(dwfl_standard_find_debuginfo)

struct Libdw {
#define REPRISE_LIBDW_MEMBER(name) decltype(&::name) name = nullptr;
  REPRISE_LIBDW_FUNCTIONS(REPRISE_LIBDW_MEMBER)
#undef REPRISE_LIBDW_MEMBER
};

// nullptr: it is not installed. Never closed: it is needed until the process ends.
const Libdw* libdw();

}  // namespace reprise::report
