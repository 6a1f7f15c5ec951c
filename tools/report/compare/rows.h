// What the comparisons of runs and of plans are made of: a figure of both sides and how it changed, and the sentence
// that says what changed most.
#pragma once
#include <optional>
#include <string>

#include "tools/report/report.h"

namespace reprise::report {

// 0 is "none" of what is counted, and "not known" of times and budgets. Bytes that move are counted, and waiting, too.
enum class Unit : uint8_t { bytes, ns, count, moved, waited };

Json figure_row(const char* label, uint64_t before, uint64_t after, Unit unit, bool less_is_better = true);
// What was chosen is neither good nor bad.
Json chosen_row(const char* label, uint64_t before, uint64_t after, Unit unit);
// "the same", "differs"; none: "not known".
const char* same_words(std::optional<bool> same);
Json text_row(const char* label, const std::string& before, const std::string& after);

inline uint64_t difference(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

// Figures beside each other, of which none is better.
Json without_judgement(Json row);
// Of times: "88 ns instead of 100 ns", or "100 ns in both" where they read alike.
std::string instead_words(uint64_t before, uint64_t after);
// "in 1.0 MiB less memory"
std::string memory_words(uint64_t before, uint64_t after);

// Both times are known. "An iteration of B took" 12.0 % less than "of A" (88 ns instead of 100 ns), `memory`.
Json verdict_of_times(const std::string& what, const std::string& than, uint64_t before, uint64_t after,
                      const std::string& memory);

}  // namespace reprise::report
