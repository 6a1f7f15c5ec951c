// Of this test's own program, which is built with lines.
#include "tools/report/symbols/symbols.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include "preload/record/build_id.h"
#include "tests/support/test.h"

namespace {
// Not in the dynamic symbol table, as most functions of a program are not.
[[gnu::noinline]] void* where_this_is(int offset) {
  const auto at = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  return reinterpret_cast<void*>(at + static_cast<uint64_t>(offset));
}
}  // namespace

namespace reprise::report {
namespace {

struct Here {
  trace::Trace trace;
  std::string frame;
  int line = 0;
};

Here here() {
  Here here;
  void* const at = where_this_is(0);
  here.line = __LINE__ - 1;
  Dl_info info{};
  EXPECT_NE(dladdr(at, &info), 0);
  char build_id[130];
  build_id_text(info.dli_fbase, build_id, sizeof build_id);
  char path[4096] = "";
  EXPECT_GT(readlink("/proc/self/exe", path, sizeof path - 1), 0);
  here.trace.info["module.symbols_test"] = fmt::format("{} {}", build_id, path);
  here.frame = fmt::format("0x{:x} (symbols_test)", static_cast<char*>(at) - static_cast<char*>(info.dli_fbase));
  return here;
}

TEST(Symbols, AnOffsetIsAFunctionWithItsLine) {
  const Here one = here();
  Symbolizer symbols(one.trace);
  const std::string text = symbols.frame(one.frame);
  EXPECT_TRUE(has(text, "here()"));
  EXPECT_TRUE(has(text, fmt::format(" at symbols_test.cpp:{} (symbols_test)", one.line)));
}

TEST(Symbols, AFileWithAnotherBuildIdIsNotAsked) {
  Here one = here();
  std::string& said = one.trace.info["module.symbols_test"];
  said[0] = said[0] == '0' ? '1' : '0';
  EXPECT_EQ(Symbolizer(one.trace).frame(one.frame), one.frame);
}

TEST(Symbols, NamesAreDemangledWhateverElseIsKnown) {
  const trace::Trace nothing;
  Symbolizer symbols(nothing);
  EXPECT_EQ(symbols.frame("_ZN3sim4makeEi+0x12 (libsim.so)"), "sim::make(int) (libsim.so)");
  EXPECT_EQ(symbols.frame("main+0x1 (program)"), "main (program)");
  for (const char* other : {"0x12 (program)", "?", "", "f (no offset)", "(", "read_weights"}) {
    EXPECT_EQ(symbols.frame(other), other);
  }
}

TEST(Symbols, EveryFrameOfEverySite) {
  trace::Trace trace;
  trace.call_sites = {"_Z1fv+0x1 (a)\n_Z1gv+0x2 (b)", "plain"};
  symbolize(trace);
  EXPECT_EQ(trace.call_sites[0], "f() (a)\ng() (b)");
  EXPECT_EQ(trace.call_sites[1], "plain");
}

}  // namespace
}  // namespace reprise::report
