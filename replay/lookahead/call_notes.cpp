#include "replay/lookahead/call_notes.h"

namespace reprise::replay {

// A number, and behind it the first time how many chunks it has.
std::string CallNotes::name(Mover mover, uint64_t chunks) {
  const auto [found, fresh] = numbers_.emplace(mover, named_);
  std::string written = std::to_string(found->second);
  if (fresh) {
    written.append(":").append(std::to_string(chunks));
    ++named_;
  }
  return written;
}

void CallNotes::begin() {
  begun_ = first_ = true;
  if (!is_on()) return;
  for (std::string* text : {&there_, &away_, &text_}) text->clear();
  numbers_.clear();
  named_ = 0;
  limit_ = memory_.chunks.limit();
  came_ = memory_.traffic.reloaded_chunks;
  memory_.for_each_mover([this](const ResidentTensor& tensor) {
    const bool there = tensor.is_resident() || tensor.state() == Residency::State::arriving;
    if (there || tensor.host_valid()) (there ? there_ : away_) += name(mover_of(tensor), tensor.chunk_count) + " ";
  });
}

void CallNotes::call(const std::vector<std::pair<Mover, uint64_t>>& touched) {
  if (!is_on()) return;
  if (limit_ != memory_.chunks.limit() || text_.size() > kMostText) end();
  limit_ = memory_.chunks.limit();
  const char* before = "";
  for (const auto& [mover, chunks] : touched) {
    text_.append(before).append(name(mover, chunks));
    before = ",";
  }
  if (!touched.empty()) text_ += " ";
  if (++calls_ == kMostCalls) end();
}

void CallNotes::freed(Mover mover) {
  const auto found = numbers_.find(mover);
  if (!is_on() || found == numbers_.end()) return;
  text_.append("-").append(std::to_string(found->second)).append(" ");
  numbers_.erase(found);
}

void CallNotes::end() {
  if (!begun_ || text_.empty()) return;
  RunLogLine line(run_log::calls::line);
  line.add(run_log::calls::first, first_)
      .add(run_log::calls::room_chunks, limit_)
      .add(run_log::calls::came_chunks, memory_.traffic.reloaded_chunks - came_)
      .add(run_log::calls::there, there_)
      .add(run_log::calls::away, away_)
      .add(run_log::calls::calls, text_);
  log_.write(line);
  for (std::string* text : {&there_, &away_, &text_}) text->clear();
  came_ = memory_.traffic.reloaded_chunks;
  first_ = false;
}

}  // namespace reprise::replay
