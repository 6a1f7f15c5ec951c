// code_interpret IMAGE [--truth SOURCE] [--text FILE] [--only PART] [--architecture N] [--sample COUNT] [--seed N]
// [--launches N] [--attempts N] [--fault N] [-v]: interprets kernels of a cubin or fatbin at random, and holds what
// they did against what their code is said to do. A line a kernel, and sums. Exit 1: a wrong claim. Kernels of NVIDIA's
// libraries are left out. Without --text it needs nvdisasm (REPRISE_NVDISASM).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "analyzer/proofs/disassembler.h"
#include "analyzer/proofs/licence.h"
#include "tests/code/trial.h"

namespace reprise::sass {
namespace {

struct Arguments {
  std::string image;
  std::string truth;
  std::string text;
  std::string only;
  uint32_t architecture = images::kAnyArchitecture;
  size_t sample = 0;
  Wishes wishes;
  bool verbose = false;
};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

Arguments read_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int n = 1; n < argc; ++n) {
    const std::string name = argv[n];
    const auto value = [&] { return std::string(n + 1 < argc ? argv[++n] : ""); };
    const auto number = [&] { return std::strtoull(value().c_str(), nullptr, 10); };
    if (name == "--truth")
      arguments.truth = value();
    else if (name == "--text")
      arguments.text = value();
    else if (name == "--only")
      arguments.only = value();
    else if (name == "--architecture")
      arguments.architecture = static_cast<uint32_t>(number());
    else if (name == "--sample")
      arguments.sample = number();
    else if (name == "--seed")
      arguments.wishes.seed = number();
    else if (name == "--launches")
      arguments.wishes.launches = static_cast<uint32_t>(number());
    else if (name == "--attempts")
      arguments.wishes.attempts = static_cast<uint32_t>(number());
    else if (name == "--fault")
      arguments.wishes.fault = static_cast<int>(number());
    else if (name == "-v")
      arguments.verbose = true;
    else
      arguments.image = name;
  }
  return arguments;
}

struct Sums {
  std::map<std::string, uint64_t> counts;
  bool wrong = false;

  void add(const Verdict& v) {
    ++counts["kernels"];
    counts["kernels interpreted"] += v.ended > 0 ? 1U : 0U;
    counts["kernels that follow pointers"] += v.followed > 0 ? 1U : 0U;
    counts["kernels refused"] += v.ended == 0 && !v.refused.empty() ? 1U : 0U;
    counts["launches"] += v.ended;
    counts["launches compared"] += v.compared;
    counts["launches without a claim"] += v.unclaimed;
    counts["launches that follow pointers"] += v.followed;
    counts["launches repeated"] += v.repeated;
    counts["launches raced"] += v.raced;
    counts["launches that show unset registers"] += v.unset;
    counts["launches strayed"] += v.strayed;
    counts["launches outside"] += v.outside;
    counts["launches cut"] += v.cut;
    counts["wrong"] += v.wrong.size();
    counts["against the truth"] += v.against_truth.size();
    wrong = wrong || !v.wrong.empty() || !v.against_truth.empty();
  }
};

void print(const Verdict& v, bool verbose) {
  for (const std::string& line : v.wrong) fmt::print("WRONG {}: {}\n", v.kernel, line);
  for (const std::string& line : v.against_truth) fmt::print("TRUTH {}: {}\n", v.kernel, line);
  if (verbose) {
    fmt::print(
        "{}\tended {} idle {} compared {} unclaimed {} followed {} repeated {} raced {} strayed {} outside {} cut "
        "{}\t{}\t{}\n",
        v.kernel.substr(0, 100), v.ended, v.idle, v.compared, v.unclaimed, v.followed, v.repeated, v.raced, v.strayed,
        v.outside, v.cut, v.refused, v.ended == 0 ? v.last : "");
  } else if (v.ended == 0 && !v.refused.empty()) {
    fmt::print("not interpreted: {}\n", v.refused);
  }
}

std::vector<const images::KernelCode*> choose(const images::CodeImage& image, const Arguments& arguments) {
  std::vector<const images::KernelCode*> kernels;
  for (const images::KernelCode& kernel : image.kernels) {
    const bool wanted = kernel.name.find(arguments.only) != std::string::npos;
    if (wanted && !code::is_nvidias(kernel.name)) kernels.push_back(&kernel);
  }
  if (arguments.sample == 0 || kernels.size() <= arguments.sample) return kernels;
  std::shuffle(kernels.begin(), kernels.end(), std::mt19937_64(arguments.wishes.seed));
  kernels.resize(arguments.sample);
  return kernels;
}

Result<std::string> text_of(const std::string& cubin, const images::CodeImage& image,
                            const std::vector<const images::KernelCode*>& kernels) {
  const char* named = std::getenv("REPRISE_NVDISASM");
  const auto program = code::find_disassembler(named == nullptr ? "" : named);
  if (!program.ok()) return program.status();
  std::vector<uint32_t> symbols;
  for (const images::FunctionCode& function : image.functions) symbols.push_back(function.symbol);
  for (const images::KernelCode* kernel : kernels) symbols.push_back(kernel->symbol);
  return code::disassemble(program.value(), cubin, symbols, std::filesystem::temp_directory_path());
}

Status interpret(const std::string& cubin, const Arguments& arguments, Sums& sums) {
  const auto image = images::parse_code(cubin);
  if (!image.ok()) return image.status();
  const auto kernels = choose(image.value(), arguments);
  if (kernels.empty()) return {};
  auto text =
      arguments.text.empty() ? text_of(cubin, image.value(), kernels) : Result<std::string>(content_of(arguments.text));
  if (!text.ok()) return text.status();
  const auto listing = code::Listing::read(std::move(text.value()));
  if (!listing.ok()) return listing.status();
  const auto truths = code::read_truth(content_of(arguments.truth));
  const Subject subject{cubin, image.value(), listing.value(), decode_all(listing.value())};
  for (const images::KernelCode* kernel : kernels) {
    if (!listing.value().function(kernel->name)) continue;
    const auto truth = truths.find(kernel->name);
    const Verdict verdict =
        try_kernel(subject, *kernel, arguments.wishes, truth == truths.end() ? nullptr : &truth->second);
    print(verdict, arguments.verbose);
    sums.add(verdict);
  }
  return {};
}

int run_all(const Arguments& arguments) {
  if (code::is_nvidias_file(arguments.image)) return 2;
  const auto cubins = images::cubins_of(content_of(arguments.image), arguments.architecture);
  if (!cubins.ok()) {
    fmt::print(stderr, "{}: {}\n", arguments.image, cubins.status().message());
    return 2;
  }
  Sums sums;
  for (const std::string& cubin : cubins.value()) {
    if (const Status status = interpret(cubin, arguments, sums); !status.ok())
      fmt::print(stderr, "{}: {}\n", arguments.image, status.message());
  }
  for (const auto& [name, count] : sums.counts) fmt::print("{}: {}; ", name, count);
  fmt::print("\n");
  return sums.wrong ? 1 : 0;
}

}  // namespace
}  // namespace reprise::sass

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: code_interpret IMAGE [--truth SOURCE] [--text FILE] [--only PART] [--sample COUNT] ...\n");
    return 2;
  }
  return reprise::sass::run_all(reprise::sass::read_arguments(argc, argv));
}
