// libFuzzer's entry, one program a row of readers.def; FUZZ_TARGET names the row.
#include "tests/fuzz/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  reprise::fuzz::FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
