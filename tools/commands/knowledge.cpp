#include "tools/commands/knowledge.h"

#include <cstdlib>

#include "preload/facts/store.h"

namespace reprise::tools {

std::string disassembler_of(const Knowledge& knowledge) {
  const char* const set = std::getenv("REPRISE_NVDISASM");
  return !knowledge.nvdisasm.empty() || set == nullptr ? knowledge.nvdisasm : set;
}

void set_knowledge(const Knowledge& knowledge, bool is_graph, analyzer::PlanOptions& options) {
  plan::read_safety(knowledge.safety.c_str(), &options.safety);
  options.recompute = !knowledge.no_recompute && (is_graph || options.safety != plan::Safety::strict);
  options.ssd = knowledge.ssd;
  options.known.code = disassembler_of(knowledge) != "none";
  if (knowledge.no_facts) return;
  const char* const chosen = knowledge.facts.empty() ? std::getenv("REPRISE_FACTS") : knowledge.facts.c_str();
  if (const std::string folder = facts::folder_of_facts(chosen); !folder.empty()) options.known.facts.emplace(folder);
}

}  // namespace reprise::tools
