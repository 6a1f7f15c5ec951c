// What fuzzing starts from: inputs that the readers accept, made of the samples that other tests use and of the images
// that nvcc made in this build; and the inputs in regressions/, each of which was a finding. Callers: corpus_test.cpp,
// and fuzz_seeds, which writes them into folders for libFuzzer.
#pragma once
#include <string>
#include <vector>

namespace reprise::fuzz {

struct Seed {
  std::string reader;
  std::string name;
  std::string bytes;
};

std::vector<Seed> seeds();
// As reader/name, below tests/fuzz/regressions.
std::vector<Seed> regressions();

}  // namespace reprise::fuzz
