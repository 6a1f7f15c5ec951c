// fuzz_seeds FOLDER: writes seeds and regressions as FOLDER/READER/NAME, for libFuzzer.
#include <filesystem>
#include <fstream>

#include "tests/fuzz/seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const auto& list : {reprise::fuzz::seeds(), reprise::fuzz::regressions()}) {
    for (const reprise::fuzz::Seed& seed : list) {
      const std::filesystem::path folder = std::filesystem::path(argv[1]) / seed.reader;
      std::filesystem::create_directories(folder);
      std::ofstream(folder / seed.name, std::ios::binary) << seed.bytes;
    }
  }
  return 0;
}
