#include "tools/lab/probe/subjects/elf_exports.h"

#include <regex>

#include "tests/support/test.h"

namespace reprise::probe {
namespace {

TEST(ElfExports, TheCountingShimExportsWhatTheHeadersDeclare) {
  const auto names = good(read_exports(REPRISE_COUNT_LIBRARY));
  const std::set<std::string> exported(names.begin(), names.end());
  const std::string meta = read_file(std::string(REPRISE_CUDA_INCLUDE) + "/generated_cuda_meta.h");
  const std::regex declaration("typedef struct (cu[A-Z]\\w*)_params_st");
  size_t declared = 0;
  for (std::sregex_iterator at(meta.begin(), meta.end(), declaration), end; at != end; ++at, ++declared) {
    EXPECT_TRUE(exported.count((*at)[1])) << (*at)[1];
  }
  EXPECT_GT(declared, 400u);
  for (const std::string& name : exported) EXPECT_TRUE(name.starts_with("cu")) << name << " is nobody's business";
}

TEST(ElfExports, RefusesDamagedFiles) {
  EXPECT_EQ(read_exports("/nonexistent").status().code(), StatusCode::not_found);
  const std::string good = read_file(REPRISE_COUNT_LIBRARY);
  const std::string path = testing::TempDir() + "damaged" + std::to_string(getpid());
  for (const size_t kept : {size_t{0}, size_t{10}, size_t{64}, good.size() / 2}) {
    std::ofstream(path, std::ios::binary) << good.substr(0, kept);
    EXPECT_EQ(read_exports(path).status().code(), StatusCode::corrupt) << kept;
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace reprise::probe
