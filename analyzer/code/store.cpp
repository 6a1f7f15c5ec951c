#include "analyzer/code/store.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "analyzer/code/kept.h"
#include "preload/facts/replace.h"

namespace reprise::code {

std::string CodeStore::path_of(uint64_t kernel) const { return fmt::format("{}/{:016x}.code", folder_, kernel); }

Result<CodeFacts> CodeStore::load(uint64_t kernel) const {
  std::ifstream file(path_of(kernel), std::ios::binary);
  if (!file) return Status(StatusCode::not_found, path_of(kernel));
  return from_text(std::string{std::istreambuf_iterator<char>(file), {}});
}

Status CodeStore::keep(uint64_t kernel, const CodeFacts& facts) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (!error) error = facts::replace_file(path_of(kernel), to_text(facts));
  if (!error) return {};
  return {StatusCode::io_error, fmt::format("cannot write {}: {}", path_of(kernel), error.message())};
}

}  // namespace reprise::code
