#include "tools/commands/knowledge.h"

#include <cstdlib>

#include "preload/facts/store.h"

namespace reprise::tools {

void set_knowledge(const Knowledge& knowledge, bool is_graph, analyzer::PlanOptions& options) {
  plan::read_safety(knowledge.safety.c_str(), &options.safety);
  options.recompute = !knowledge.no_recompute && (is_graph || options.safety != plan::Safety::strict);
  options.ssd = knowledge.ssd;
  if (knowledge.no_facts) return;
  const char* const chosen = knowledge.facts.empty() ? std::getenv("REPRISE_FACTS") : knowledge.facts.c_str();
  if (const std::string folder = facts::folder_of_facts(chosen); !folder.empty()) options.facts.emplace(folder);
}

}  // namespace reprise::tools
