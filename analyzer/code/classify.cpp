#include "analyzer/code/classify.h"

#include <algorithm>

namespace reprise::code {
namespace {

using Bases = std::set<Base>;

bool meet(const Bases& a, const Bases& b) {
  return std::any_of(a.begin(), a.end(), [&](const Base& base) { return b.contains(base); });
}

Bases without(Bases a, const Bases& b) {
  std::erase_if(a, [&](const Base& base) { return b.contains(base); });
  return a;
}

class Classifier {
 public:
  Classifier(const ValueTable& values, ValueId low, ValueId high)
      : values_(values), low_(values[low]), high_(values[high]) {
    read_alternatives(low_, false, lower_);
    read_alternatives(high_, true, upper_);
    SymbolSet all = values.symbols_of(low);
    all |= values.symbols_of(high);
    all.each([&](SymbolNumber number) {
      const Symbol& symbol = values_.symbols.of(number);
      if (is_loaded(symbol.base.kind)) loaded_.insert(symbol.base);
      if (is_word(symbol)) words_.insert(symbol.base);
    });
    if (!is_relative()) leave_numbers(values.symbols_of(high));
  }

  AddressClass classify() const {
    std::set<Bases> choices;
    Bases bases;
    bool all = true;
    for (const Bases& one : upper_) {
      Bases choice = without(one, loaded_);
      all = all && !choice.empty();
      bases.insert(choice.begin(), choice.end());
      choices.insert(std::move(choice));
    }
    const bool matched =
        !lower_.empty() && std::all_of(lower_.begin(), lower_.end(), [&](const Bases& x) { return meet(x, bases); });
    const bool clean = !high_.number && (!low_.number || window()) && !choices.empty() && all && matched;
    if (loaded_.empty()) {
      const bool single = clean && minus_.empty() &&
                          std::all_of(choices.begin(), choices.end(), [](const Bases& x) { return x.size() == 1; });
      if (single) return {Grade::closed, {bases}, without(words_, bases)};
      // Made in another way, but of these words alone.
      return words_.empty() ? AddressClass{Grade::hidden, {Bases{}}, {}}
                            : AddressClass{Grade::closed, {words_}, {}, true};
    }
    // A base that its own index is made of: p + (q - p) / 4 * 4 leads to q.
    if (!clean || meet(bases, inside()) || meet(bases, minus_)) return {Grade::hidden, {loaded_}, words_};
    const bool doubtful =
        std::any_of(upper_.begin(), upper_.end(), [&](const Bases& x) { return meet(x, loaded_) || x.size() > 1; });
    return {doubtful ? Grade::mixed : Grade::indexed, choices, without(words_, bases)};
  }

 private:
  static bool is_word(const Symbol& symbol) {
    return !is_loaded(symbol.base.kind) && !is_outside(symbol.base.kind) && !symbol.upper;
  }

  // May a number in it be the distance from its own base to another address?
  bool is_relative() const {
    const Bases within = inside();
    const auto meets = [&](const Bases& choice) { return meet(choice, within); };
    return std::any_of(lower_.begin(), lower_.end(), meets) || std::any_of(upper_.begin(), upper_.end(), meets);
  }

  // What is part of a number in the lower half, and nowhere in the upper one, is not the address: its upper half is
  // missing.
  void leave_numbers(const SymbolSet& high) {
    Bases here;
    high.each([&](SymbolNumber number) { here.insert(values_.symbols.of(number).base); });
    for (const Bases& alternative : lower_) here.insert(alternative.begin(), alternative.end());
    here.insert(minus_.begin(), minus_.end());
    Bases left = words_;
    std::erase_if(left, [&](const Base& base) { return !here.contains(base); });
    if (!left.empty()) words_ = std::move(left);
  }

  // The bases of each alternative that leads to global memory, as far as their `upper` halves are added.
  void read_alternatives(const Value& value, bool upper, std::set<Bases>& into) {
    const auto add = [&](const Sum& sum) {
      Bases plus;
      for (const Term& term : sum) {
        const Symbol& symbol = values_.symbols.of(term.symbol);
        if (is_outside(symbol.base.kind)) return;
        if (!term.minus && symbol.upper == upper) plus.insert(symbol.base);
      }
      for (const Term& term : sum) {
        if (term.minus) minus_.insert(values_.symbols.of(term.symbol).base);
      }
      into.insert(std::move(plus));
    };
    value.sole.each([&](SymbolNumber symbol) { add({{symbol, false}}); });
    for (const Sum& sum : value.sums) add(sum);
  }

  bool window() const {
    bool found = false;
    high_.sole.each(
        [&](SymbolNumber symbol) { found = found || values_.symbols.of(symbol).base.kind == BaseKind::shared; });
    return found;
  }

  Bases inside() const {
    SymbolSet taint = low_.taint;
    taint |= high_.taint;
    Bases found;
    taint.each([&](SymbolNumber number) {
      const Symbol& symbol = values_.symbols.of(number);
      if (!symbol.upper) found.insert(symbol.base);
    });
    return found;
  }

  const ValueTable& values_;
  const Value& low_;
  const Value& high_;
  Bases words_;   // that a launch shows
  Bases loaded_;  // from memory
  Bases minus_;
  std::set<Bases> lower_;
  std::set<Bases> upper_;
};

}  // namespace

AddressClass classify(const ValueTable& values, ValueId low, ValueId high) {
  return Classifier(values, low, high).classify();
}

}  // namespace reprise::code
