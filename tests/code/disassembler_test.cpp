#include "analyzer/proofs/disassembler.h"

#include "analyzer/proofs/licence.h"
#include "tests/support/test.h"

namespace reprise::code {
namespace {

class Disassembler : public testing::Test {
 protected:
  // A program that stands in for nvdisasm.
  std::string program(const std::string& script) {
    const std::string path = scratch_.path("nvdisasm");
    write_file(path, "#!/bin/sh\n" + script + "\n");
    chmod(path.c_str(), 0700);
    return path;
  }
  const std::string& folder() const { return scratch_.folder(); }

 private:
  Scratch scratch_;
};

TEST_F(Disassembler, GetsTheCubinAndTheSymbols) {
  const std::string path = program(R"(echo "$1 $2 $3"; cat "$4")");
  EXPECT_EQ(good(disassemble(path, "content", {7, 9}, folder())), "-c -fun 7,9\ncontent");
  const auto left = std::distance(std::filesystem::directory_iterator(folder()), {});
  EXPECT_EQ(left, 1) << "a temporary file is left";
}

TEST_F(Disassembler, AFailureSaysWhy) {
  const Status status = disassemble(program("echo no such symbol >&2; exit 3"), "content", {1}, folder()).status();
  EXPECT_TRUE(has(status.message(), "it failed: no such symbol"));
  EXPECT_FALSE(disassemble(folder() + "/missing", "content", {1}, folder()).ok());
  EXPECT_FALSE(disassemble(program("true"), "content", {1}, folder() + "/missing").ok());
}

TEST_F(Disassembler, IsWhereTheVariableSays) {
  const std::string path = program("true");
  EXPECT_EQ(good(find_disassembler(path)), path);
  const Status status = find_disassembler(folder() + "/missing").status();
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  EXPECT_TRUE(begins(status.message(), "REPRISE_NVDISASM="));
}

TEST(Licence, LibrariesOfNvidiaAreLeftAlone) {
  EXPECT_TRUE(is_nvidias_file("/lib/libcublasLt.so.13"));
  EXPECT_FALSE(is_nvidias_file("/lib/libtorch_cuda.so"));
  EXPECT_TRUE(is_nvidias("_ZN8cublasLt19splitKreduce_kernelE"));
  EXPECT_TRUE(is_nvidias("ampere_sgemm_128x64_tn"));
  EXPECT_TRUE(is_nvidias("cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4"));
  EXPECT_FALSE(is_nvidias("_ZN7cutlass6KernelINS_4gemm6kernel4GemmEEEvNT_6ParamsE"));
  EXPECT_FALSE(is_nvidias("_ZN2at6native18elementwise_kernelE"));
}

}  // namespace
}  // namespace reprise::code
