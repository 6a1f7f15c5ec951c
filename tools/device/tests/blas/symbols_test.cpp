// The cuBLAS stand-ins have every function that PyTorch's binaries import. Skipped without a PyTorch for CUDA 13
// (torch_python()).
#include "tests/e2e/harness.h"
#include "tests/support/test.h"

namespace reprise::e2e {
namespace {

// Functions of cuBLAS that `nm` lists, without their versions.
std::set<std::string> functions(const std::string& option, const std::string& files) {
  const Outcome listed = well(run({"/bin/sh", "-c", "nm -D " + option + " " + files}));
  std::set<std::string> names;
  std::istringstream words(listed.out);
  for (std::string word; words >> word;) {
    if (word.rfind("cublas", 0) == 0) names.insert(word.substr(0, word.find('@')));
  }
  return names;
}

std::set<std::string> without(const std::set<std::string>& all, const std::set<std::string>& some) {
  std::set<std::string> rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::inserter(rest, rest.end()));
  return rest;
}

TEST(Symbols, OfPyTorchAreThere) {
  constexpr char kFolder[] =
      "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin) + '/lib', end='')";
  const Outcome folder = run({"/usr/bin/env", torch_python(), "-c", kFolder});
  if (folder.exit_code != 0) GTEST_SKIP() << "no PyTorch (REPRISE_TORCH_PYTHON names a python that has one)";
  const auto imported = functions("--undefined-only", folder.out + "/libtorch_cuda*.so");
  if (imported.count("cublasCreate_v2") == 0) GTEST_SKIP() << "this PyTorch is not for CUDA";
  auto ours = functions("--defined-only", built("lib/sim/libcublas.so.13"));
  ours.merge(functions("--defined-only", built("lib/sim/libcublasLt.so.13")));
  EXPECT_EQ(without(imported, ours), std::set<std::string>()) << "missing";
}

}  // namespace
}  // namespace reprise::e2e
