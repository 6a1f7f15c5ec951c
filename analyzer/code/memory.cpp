// Interprets loads, stores and atomics: records their addresses and sets their results.
#include <algorithm>
#include <array>

#include "analyzer/code/machine.h"

namespace reprise::code {
namespace {

// The two halves of a global or generic address.
struct Address {
  ValueId low = ValueTable::kNothing;
  ValueId high = ValueTable::kNothing;

  bool nothing() const { return low == ValueTable::kNothing || high == ValueTable::kNothing; }
};

bool is_window(BaseKind kind) { return kind == BaseKind::stack || kind == BaseKind::local || kind == BaseKind::shared; }

class MemoryStep {
 public:
  explicit MemoryStep(const Step& step)
      : step_(step), i_(step.instruction), machine_(step.machine), values_(step.machine.values) {
    for (size_t n = 0; n < i_.operands.size(); ++n) {
      if (i_.operands[n].is(OperandKind::address)) addresses_.push_back(n);
    }
    whole_ = !i_.modifiers.any(Modifier::U8, Modifier::S8, Modifier::U16, Modifier::S16, Modifier::n16);
    const bool two = i_.modifiers.any(Modifier::n64, Modifier::n2, Modifier::F64, Modifier::U64, Modifier::S64);
    count_ = i_.modifiers.any(Modifier::n128, Modifier::n4) ? 4 : two ? 2 : 1;
  }

  void run() {
    if (addresses_.empty()) return step_.doubt("an address of an unknown form");
    switch (i_.row.effect) {
      case Effect::load_shared:
        return place(step_, load(Space::shared), whole_);
      case Effect::store_shared:
        return machine_.cells.store(Space::shared, data(), whole_);
      case Effect::change_shared:
        return change_shared();
      case Effect::synchronise:
        return synchronise();
      case Effect::load_local:
      case Effect::store_local:
        return use_local();
      case Effect::bulk:
        return copy_bulk();
      case Effect::tensor:
        return use_tensor();
      default:
        return use_global();
    }
  }

 private:
  const CodeOperand& address_operand(size_t number) const { return i_.operands[addresses_[number]]; }
  const CodeOperand& last_address() const { return address_operand(addresses_.size() - 1); }

  std::vector<ValueId> load(Space space, std::optional<uint32_t> where = {}) {
    machine_.looked_into = true;
    return machine_.cells.load(space, count_, where);
  }

  // What stands behind the address: of a store the first operand, of an atomic all.
  std::vector<ValueId> data(bool all = false) {
    std::vector<ValueId> words;
    for (size_t n = addresses_.back() + 1; n < i_.operands.size(); ++n) {
      const std::vector<ValueId> more = moved(step_, i_.operands[n], count_);
      words.insert(words.end(), more.begin(), more.end());
      if (!all) return words;
    }
    if (words.empty() && !all) step_.doubt("a store without data");
    return words;
  }

  std::vector<ValueId> numbers(std::vector<ValueId> words) {
    for (ValueId& word : words) word = machine_.opaque({word});
    return words;
  }

  bool has_result() const {
    return std::any_of(
        i_.operands.begin(), i_.operands.begin() + static_cast<std::ptrdiff_t>(addresses_[0]),
        [](const CodeOperand& operand) { return operand.is(OperandKind::registers) && operand.reg != kZero; });
  }

  void change_shared() {
    const bool ordered =
        i_.modifiers.any(Modifier::F32, Modifier::F16x2, Modifier::F64, Modifier::BF16x2, Modifier::CAS) ||
        i_.modifiers.any(Modifier::CAST, Modifier::EXCH) || has_result();
    machine_.flag(ordered ? Impurity::shared_atomic : Impurity::shared_atomic_number, step_.number);
    for (const ValueId word : numbers(data(true))) machine_.cells.store(Space::shared, std::array{word}, true);
    place(step_, load(Space::shared), whole_);
  }

  // Barriers in shared memory: numbers, which take no address anywhere.
  void synchronise() {
    for (const ValueId word : numbers(data(true))) machine_.cells.store(Space::shared, std::array{word}, true);
    for (size_t n = 0; n < addresses_[0]; ++n) {
      if (!i_.operands[n].is(OperandKind::registers)) continue;
      for (uint32_t half = 0; half < 2; ++half) {
        const auto reg = static_cast<Register>(i_.operands[n].reg + half);
        if (holds(i_.operands[n].reg)) step_.write(reg, values_.join(step_.read(reg), ValueTable::kNumber));
      }
    }
  }

  std::optional<uint32_t> place_on_stack() {
    const CodeOperand& operand = address_operand(0);
    if (operand.form != AddressForm::plain) step_.doubt("an address of an unknown form");
    ValueId low = step_.read(operand.reg);
    if (operand.second != kNoRegister) low = values_.add(low, step_.read(operand.second));
    const Value& value = values_[low];
    const SymbolSet stack(values_.symbols.number({BaseKind::stack, 0}, false));
    if (value.exactness != Exactness::number || value.number || !value.sums.empty() || value.sole != stack)
      return std::nullopt;
    return value.exact + operand.value;
  }

  void use_local() {
    const auto where = place_on_stack();
    if (i_.row.effect == Effect::load_local) return place(step_, load(Space::local, where), whole_);
    machine_.cells.store(Space::local, data(), whole_, where);
  }

  Address address_of(const CodeOperand& operand) {
    const ValueId offset = values_.constant(operand.value);
    if (operand.reg == kNoRegister) return {offset, ValueTable::kZero};
    const auto pair = [](Register reg) { return static_cast<Register>(reg + 1); };
    const ValueId low = values_.add(step_.read(operand.reg), offset);
    const bool two = operand.second != kNoRegister;
    if (!two && (operand.form == AddressForm::plain || operand.form == AddressForm::wide)) {
      return {low, step_.read(pair(operand.reg))};
    }
    if (two && is_uniform(operand.second) && operand.form == AddressForm::wide) {
      return {values_.add(low, step_.read(operand.second)),
              values_.inexact(values_.add(step_.read(pair(operand.reg)), step_.read(pair(operand.second))))};
    }
    if (two && is_uniform(operand.second) && operand.form == AddressForm::narrow) {
      return {values_.add(low, step_.read(operand.second)), values_.inexact(step_.read(pair(operand.second)))};
    }
    step_.doubt("an address of an unknown form");
    return {};
  }

  // A load gives a symbol for each base that its address may have.
  std::vector<ValueId> through(const Address& address, uint32_t count, uint32_t displacement) {
    std::vector<Base> bases;
    for (const ValueId half : {address.low, address.high}) {
      const Value& value = values_[half];
      SymbolSet all = value.sole;
      for (const Sum& sum : value.sums) {
        for (const Term& term : sum) all.add(term.symbol);
      }
      all.remove(kNullSymbol);
      all.each([&](SymbolNumber symbol) {
        bases.push_back(values_.symbols.loaded_through(values_.symbols.of(symbol).base));
      });
    }
    if (bases.empty()) bases.push_back({BaseKind::loaded, kUnresolved});
    std::vector<ValueId> words;
    for (uint32_t k = 0; k < count; ++k) {
      SymbolSet symbols;
      for (const Base base : bases) symbols.add(values_.symbols.number(base, ((displacement >> 2) + k) % 2 != 0));
      words.push_back(values_.intern(whole_ ? Value{.sole = std::move(symbols)}
                                            : Value{.number = true, .taint = std::move(symbols)}));
    }
    return words;
  }

  void record(How how, const Address& address, std::vector<ValueId> stored = {}, bool descriptor = false) {
    if (!machine_.final) return;
    if (address.nothing()) return step_.doubt("an address that nothing defines");
    machine_.accesses.push_back({step_.number, how, descriptor, address.low, address.high, std::move(stored)});
  }

  void use_tensor() {
    const bool reads = i_.row.opcode == Opcode::UTMALDG;
    if (reads && addresses_.size() < 2) return step_.doubt("an address of an unknown form");
    if (reads) {
      const ValueId word = values_.symbol({BaseKind::loaded, kDescriptor}, false);
      const ValueId number = machine_.opaque({word});
      machine_.cells.store(Space::shared, std::array{number}, true);
    }
    const Address address = address_of(address_operand(reads ? 1 : 0));
    const How how = reads ? How::read : i_.row.opcode == Opcode::UTMASTG ? How::write : How::atomic;
    machine_.flag(Impurity::descriptor, step_.number);
    record(how, address, reads ? std::vector<ValueId>{} : shared_content(), true);
  }

  std::vector<ValueId> shared_content() {
    machine_.looked_into = true;
    return {machine_.cells.content(Space::shared)};
  }

  void copy_bulk() {
    const bool reads = i_.text.starts_with("UBLKCP.S.G ");
    const bool writes = i_.text.starts_with("UBLKCP.G.S ");
    if ((!reads && !writes) || addresses_.size() != (reads ? 3U : 2U)) {
      if (!(reads && addresses_.size() == 2)) return step_.doubt("a copy of an unknown form");
    }
    const Address address = address_of(address_operand(reads ? 1 : 0));
    if (reads && !address.nothing()) machine_.cells.store(Space::shared, through(address, 2, 0), true);
    record(reads ? How::read : How::write, address, reads ? std::vector<ValueId>{} : shared_content());
  }

  How how() const {
    switch (i_.row.effect) {
      case Effect::load_global:
      case Effect::load_generic:
      case Effect::copy_global:
        return How::read;
      case Effect::store_global:
      case Effect::store_generic:
        return How::write;
      default:
        return How::atomic;
    }
  }

  // Which windows a generic address may lead into, and whether it may lead to global memory.
  struct AddressReach {
    bool global = true;
    std::vector<Space> spaces;
  };
  AddressReach reach_of(const Address& address) {
    AddressReach reach;
    const Effect effect = i_.row.effect;
    if (effect != Effect::load_generic && effect != Effect::store_generic && effect != Effect::change_generic)
      return reach;
    bool shared = false;
    bool local = false;
    for (const ValueId half : {address.low, address.high}) {
      values_.symbols_of(half).each([&](SymbolNumber symbol) {
        const BaseKind kind = values_.symbols.of(symbol).base.kind;
        shared = shared || kind == BaseKind::shared;
        local = local || kind == BaseKind::local || kind == BaseKind::stack;
      });
    }
    if (shared) reach.spaces.push_back(Space::shared);
    if (local) reach.spaces.push_back(Space::local);
    const Value& high = values_[address.high];
    const auto window = [&](SymbolNumber symbol) { return is_window(values_.symbols.of(symbol).base.kind); };
    reach.global = high.number;
    high.sole.each([&](SymbolNumber symbol) { reach.global = reach.global || !window(symbol); });
    for (const Sum& sum : high.sums) {
      reach.global =
          reach.global || std::none_of(sum.begin(), sum.end(), [&](const Term& term) { return window(term.symbol); });
    }
    return reach;
  }

  void flag_global(bool global) {
    const bool strong = i_.modifiers.any(Modifier::STRONG, Modifier::MMIO);
    if (how() == How::atomic) {
      machine_.flag(global ? Impurity::atomic : Impurity::shared_atomic, step_.number);
    } else if (strong) {
      machine_.flag(how() == How::read ? Impurity::strong_read : Impurity::strong_write, step_.number);
    }
  }

  void use_global() {
    if (!i_.has(Modifier::E)) return step_.doubt("an address of 32 bits");
    const CodeOperand& operand = last_address();
    const Address address = address_of(operand);
    const bool loads =
        i_.row.effect != Effect::copy_global && (how() == How::read || (how() == How::atomic && has_result()));
    if (address.nothing()) {
      if (loads) place(step_, std::vector<ValueId>(count_, ValueTable::kNothing));
      return record(how(), address);
    }
    const AddressReach reach = reach_of(address);
    std::vector<ValueId> stored;
    if (how() != How::read) stored = data(how() == How::atomic);
    change(reach, stored);
    flag_global(reach.global);
    if (i_.row.effect == Effect::copy_global) machine_.cells.store(Space::shared, through(address, 2, 0), true);
    if (loads) {
      std::vector<ValueId> words(count_, ValueTable::kNothing);
      if (reach.global) words = through(address, count_, operand.value);
      for (const Space space : reach.spaces) {
        const std::vector<ValueId> more = load(space);
        for (size_t k = 0; k < words.size(); ++k) words[k] = values_.join(words[k], more[k]);
      }
      place(step_, words, whole_);
    }
    if (reach.global) record(how(), address, std::move(stored));
  }

  void change(const AddressReach& reach, const std::vector<ValueId>& stored) {
    for (const Space space : reach.spaces) {
      if (how() == How::write) machine_.cells.store(space, stored, whole_);
      if (how() != How::atomic) continue;
      for (const ValueId word : numbers(stored)) machine_.cells.store(space, std::array{word}, true);
    }
  }

  const Step& step_;
  const Instruction& i_;
  KernelMachine& machine_;
  ValueTable& values_;
  std::vector<size_t> addresses_;  // which operands are
  bool whole_ = true;
  uint32_t count_ = 1;
};

}  // namespace

void execute_memory(const Step& step) { MemoryStep(step).run(); }

}  // namespace reprise::code
