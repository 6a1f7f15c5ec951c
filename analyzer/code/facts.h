// What the machine code of a kernel says about it, for every launch: which parameter words its accesses lead to,
// whether addresses or indices come from memory, what stands against launching it again. How it is proven:
// docs/decisions/0076-code-facts.md. Callers: `reprise code`, tests.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/code/domain/expression.h"
#include "analyzer/code/domain/symbol.h"
#include "preload/images/code.h"

namespace reprise::code {

class Listing;

enum class How : uint8_t { read, write, atomic };

// How much an address says, the best first. A kernel is what its worst address is.
enum class Grade : uint8_t {
  closed,   // a function of parameters and of the ids of threads and blocks
  indexed,  // a parameter, and a number that was loaded
  mixed,    // the same, but only the launch shows which of the two is the address
  hidden,   // what was loaded may be the address
};

enum class Impurity : uint8_t {
  atomic,
  shared_atomic_number,  // whose order does not show
  shared_atomic,
  strong_read,
  strong_write,
  clock,
  processor,
  special_register,
  active_mask,
  scatter,
  reads_what_it_writes,
  module_variable,
  driver_memory,
  heap,
  descriptor,
  dependent_launch,
  null_unused,
  prints,
  asserts,
  allocates,
};
const char* name_of(Impurity impurity);
const char* name_of(Grade grade);
// That does not keep a kernel from doing the same again.
bool is_harmless(Impurity impurity);

struct Doubt {
  std::string what;
  uint32_t instruction = 0;
};

// Accesses that are alike: of each set of bases the launch has to show one as the address, and `numbers` as none.
struct Site {
  How how = How::read;
  Grade grade = Grade::closed;
  bool descriptor = false;
  bool derived = false;  // made of words in a way that may change which address they are
  std::set<std::set<Base>> choices;
  std::set<Base> numbers;

  bool operator<(const Site& other) const {
    return std::tie(how, grade, descriptor, derived, choices, numbers) <
           std::tie(other.how, other.grade, other.descriptor, other.derived, other.choices, other.numbers);
  }
};

struct WordUses {
  bool read = false;
  bool written = false;
  bool atomic = false;
  bool index = false;   // goes into addresses of other words, or is the address itself: the launch shows which
  bool stored = false;  // itself, or what is derived from it, is written to memory

  bool any() const { return read || written || atomic; }
};

struct CodeFacts {
  std::string kernel;
  std::optional<std::string> unknown;  // why, with the instruction; then nothing else holds
  Grade grade = Grade::closed;
  std::string worst;                  // an instruction of that grade, where it is not closed
  std::map<Site, std::string> sites;  // with an instruction each
  std::map<Base, WordUses> uses;
  std::map<Impurity, std::string> impurities;
  std::vector<images::ParameterImage> parameters;
  Symbols symbols;  // what the keys of bases mean
  Expressions expressions;

  bool known() const { return !unknown; }
  // Nothing was found that stands against launching it again.
  bool repeats() const;
};

// Analyses `kernel`. `listing` is the disassembly of `image`.
CodeFacts analyse(const Listing& listing, const images::CodeImage& image, const images::KernelCode& kernel);

}  // namespace reprise::code
