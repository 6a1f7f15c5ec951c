#include "tools/device/modules/kernel_code.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "analyzer/code/kept.h"
#include "analyzer/code/store.h"
#include "analyzer/proofs/disassembler.h"
#include "analyzer/proofs/image_analysis.h"
#include "preload/facts/store.h"
#include "preload/images/code.h"
#include "preload/trace/kernel_identity.h"
#include "tools/device/base/settings.h"

namespace reprise::sim {
namespace {

uint64_t identity_of(const Function& function) {
  std::vector<trace::ParameterLayout> layout;
  for (const ParameterImage& parameter : function.kernel->parameters) {
    layout.push_back({parameter.offset - function.kernel->parameters.front().offset, parameter.bytes});
  }
  return trace::kernel_identity(trace::code_of_image(0, function.image->content), function.kernel->name, layout);
}

class KernelCodes {
 public:
  const code::CodeFacts* of(const Function& function) {
    if (named_ == "none" || !function.kernel->parameters_known) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = known_.try_emplace({function.image.get(), function.kernel});
    if (fresh) at->second = look_up(function);
    return at->second.get();
  }

 private:
  std::unique_ptr<const code::CodeFacts> look_up(const Function& function) const {
    const code::CodeStore store(facts::folder_of_facts(std::getenv("REPRISE_FACTS")));
    const uint64_t identity = identity_of(function);
    Result<code::CodeFacts> found = store.load(identity);
    if (!found.ok()) {
      found = analyse(function);
      if (!found.ok()) return nullptr;
      static_cast<void>(store.keep(identity, found.value()));  // else it is made again
      found = code::from_text(code::to_text(found.value()));   // as it is read the next time
    }
    return found.ok() ? std::make_unique<const code::CodeFacts>(std::move(found.value())) : nullptr;
  }

  Result<code::CodeFacts> analyse(const Function& function) const {
    const auto& image = static_cast<const LoadedImage&>(*function.image);
    const auto program = code::find_disassembler(named_, image.path);
    if (!program.ok()) return program.status();
    const auto cubins = images::cubins_of(std::string(image.bytes), settings().architecture);
    if (!cubins.ok()) return cubins.status();
    for (const std::string& cubin : cubins.value()) {
      const auto found = code::analyse_cubin(program.value(), cubin,
                                             [&](const std::string& name) { return name == function.kernel->name; });
      if (!found.ok()) return found.status();
      if (!found.value().empty()) return found.value().front();
    }
    return Status(StatusCode::not_found, function.kernel->name);
  }

  static std::string value_of(const char* variable) {
    const char* const value = std::getenv(variable);
    return value == nullptr ? "" : value;
  }

  const std::string named_ = value_of("REPRISE_NVDISASM");
  std::mutex mutex_;
  std::map<std::pair<const Image*, const KernelImage*>, std::unique_ptr<const code::CodeFacts>> known_;
};

}  // namespace

const code::CodeFacts* code_of(const Function& function) {
  static KernelCodes& codes = *new KernelCodes;
  return codes.of(function);
}

}  // namespace reprise::sim
