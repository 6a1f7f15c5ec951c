// The text form:
//
//     reprise facts 3
//     kernel 0123456789abcdef _Z5scalePKfPff
//     device simulated
//     launches 4 2026-11-23 2026-11-23
//     again 4 0
//     slot 0 0 0 0 4 0 4 4096 65536 12 0
//     strayed 0
//     shape 89abcdef01234567 12
//     checksum 0123456789abcdef
#include <fmt/format.h>

#include <cinttypes>
#include <cstdio>
#include <sstream>

#include "preload/facts/facts.h"
#include "preload/trace/signature.h"

namespace reprise::facts {
namespace {

constexpr char kHead[] = "reprise facts 3";
constexpr char kChecksum[] = "checksum ";

uint64_t checksum_of(const std::string& text) { return trace::hash_bytes(text.data(), text.size()); }

Status damaged(const char* what) { return {StatusCode::corrupt, what}; }

bool read_slot(std::istringstream& line, SlotEvidence* slot) {
  line >> slot->parameter_offset >> slot->overwritten >> slot->written >> slot->updated >> slot->kept >> slot->same >>
      slot->reached >> slot->least_bytes >> slot->most_bytes >> slot->guarded >> slot->led;
  return !line.fail();
}

bool read_shape(std::istringstream& line, std::vector<AuditedShape>* shapes) {
  AuditedShape shape;
  line >> std::hex >> shape.shape >> std::dec >> shape.launches;
  if (line.fail() || shapes->size() == kMostShapes) return false;
  if (!shapes->empty() && shapes->back().shape >= shape.shape) return false;
  shapes->push_back(shape);
  return true;
}

bool read_line(const std::string& text, KernelFacts* facts) {
  std::istringstream line(text);
  std::string word;
  line >> word;
  if (word == "kernel") {
    line >> std::hex >> facts->kernel >> facts->name;
  } else if (word == "device") {
    std::getline(line >> std::ws, facts->device);
  } else if (word == "launches") {
    line >> facts->launches >> facts->first_day >> facts->last_day;
  } else if (word == "again") {
    line >> facts->equal >> facts->unequal;
  } else if (word == "slot") {
    SlotEvidence slot;
    if (!read_slot(line, &slot)) return false;
    if (!facts->slots.empty() && facts->slots.back().parameter_offset >= slot.parameter_offset) return false;
    facts->slots.push_back(slot);
  } else if (word == "strayed") {
    line >> facts->strayed;
  } else if (word == "shape") {
    return read_shape(line, &facts->shapes);
  } else {
    return false;
  }
  return !line.fail();
}

}  // namespace

std::string to_text(const KernelFacts& facts) {
  std::string text =
      fmt::format("{}\nkernel {:016x} {}\ndevice {}\nlaunches {} {} {}\nagain {} {}\n", kHead, facts.kernel, facts.name,
                  facts.device, facts.launches, facts.first_day, facts.last_day, facts.equal, facts.unequal);
  for (const SlotEvidence& slot : facts.slots) {
    text += fmt::format("slot {} {} {} {} {} {} {} {} {} {} {}\n", slot.parameter_offset, slot.overwritten,
                        slot.written, slot.updated, slot.kept, slot.same, slot.reached, slot.least_bytes,
                        slot.most_bytes, slot.guarded, slot.led);
  }
  text += fmt::format("strayed {}\n", facts.strayed);
  for (const AuditedShape& shape : facts.shapes) {
    text += fmt::format("shape {:016x} {}\n", shape.shape, shape.launches);
  }
  return text + fmt::format("{}{:016x}\n", kChecksum, checksum_of(text));
}

Result<KernelFacts> from_text(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line)) return damaged("it is empty");
  if (line != kHead) {
    return line.rfind("reprise facts ", 0) == 0 ? damaged("it is of another version") : damaged("it holds no facts");
  }
  KernelFacts facts;
  size_t at = line.size() + 1;
  while (std::getline(lines, line)) {
    if (line.rfind(kChecksum, 0) == 0) {
      const std::string wanted = fmt::format("{}{:016x}", kChecksum, checksum_of(text.substr(0, at)));
      if (line != wanted || at + line.size() + 1 != text.size()) return damaged("its checksum is wrong");
      return facts;
    }
    if (!read_line(line, &facts)) return damaged("it has a line that is none of its own");
    at += line.size() + 1;
  }
  return damaged("it ends early");
}

}  // namespace reprise::facts
