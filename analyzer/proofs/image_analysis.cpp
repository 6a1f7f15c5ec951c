#include "analyzer/proofs/image_analysis.h"

#include <filesystem>
#include <set>

#include "analyzer/code/listing/listing.h"
#include "analyzer/proofs/disassembler.h"
#include "analyzer/proofs/licence.h"
#include "preload/images/code.h"

namespace reprise::code {
namespace {

CodeFacts not_looked_at(const images::KernelCode& kernel) {
  CodeFacts facts;
  facts.kernel = kernel.name;
  facts.parameters = kernel.parameters;
  facts.unknown = kNotDisassembled;
  return facts;
}

// What is disassembled: the wanted kernels, the functions in their sections, and the functions that any kernel may
// call. Sections of other kernels are left out with all their functions, because a large image has 50 MB of text.
std::vector<uint32_t> symbols_of(const images::CodeImage& image,
                                 const std::vector<const images::KernelCode*>& kernels) {
  std::set<uint32_t> others;
  for (const images::KernelCode& kernel : image.kernels) others.insert(kernel.section);
  std::vector<uint32_t> symbols;
  for (const images::KernelCode* kernel : kernels) {
    if (is_nvidias(kernel->name)) continue;
    symbols.push_back(kernel->symbol);
    others.erase(kernel->section);
  }
  if (symbols.empty()) return symbols;
  for (const images::FunctionCode& function : image.functions) {
    if (!others.contains(function.section)) symbols.push_back(function.symbol);
  }
  return symbols;
}

}  // namespace

Result<std::vector<CodeFacts>> analyse_cubin(const std::string& program, const std::string& cubin,
                                             const std::function<bool(const std::string& name)>& wanted) {
  const auto image = images::parse_code(cubin);
  if (!image.ok()) return image.status();
  std::vector<const images::KernelCode*> kernels;
  for (const images::KernelCode& kernel : image.value().kernels) {
    if (wanted(kernel.name)) kernels.push_back(&kernel);
  }
  const std::vector<uint32_t> symbols = symbols_of(image.value(), kernels);
  Result<Listing> listing = Listing{};
  if (!symbols.empty()) {
    auto text = disassemble(program, cubin, symbols, std::filesystem::temp_directory_path());
    if (!text.ok()) return text.status();
    listing = Listing::read(std::move(text.value()));
    if (!listing.ok()) return listing.status();
  }
  std::vector<CodeFacts> found;
  found.reserve(kernels.size());
  for (const images::KernelCode* kernel : kernels) {
    found.push_back(is_nvidias(kernel->name) ? not_looked_at(*kernel)
                                             : analyse(listing.value(), image.value(), *kernel));
  }
  return found;
}

}  // namespace reprise::code
