#include "replay/issue/device_room.h"

#include "preload/base/causes.h"

namespace reprise::replay {

RoomFigures figures_of(const Outside& outside) noexcept {
  if (outside.total() == 0) return {};
  return {outside.total(), outside.elsewhere(), outside.headroom(), outside.room() + outside.bytes()};
}

void DeviceRoom::set(const RoomFigures& figures) noexcept {
  const std::lock_guard lock(mutex_);
  figures_ = figures;
}

RoomFigures DeviceRoom::get() const noexcept {
  const std::lock_guard lock(mutex_);
  return figures_;
}

void DeviceRoom::write(RunLogWriter& log) const noexcept {
  const RoomFigures figures = get();
  RunLogLine line(run_log::room::line);
  line.add(run_log::room::total_bytes, figures.total)
      .add(run_log::room::elsewhere_bytes, figures.elsewhere)
      .add(run_log::room::headroom_bytes, figures.headroom)
      .add(run_log::room::room_bytes, figures.room);
  log.write(line);
}

void DeviceRoom::tell_of_less_than(uint64_t budget, RunLogWriter& log) noexcept {
  const RoomFigures figures = get();
  if (figures.total == 0 || figures.room >= budget) return;
  write(log);
  if (told_.exchange(true)) return;
  say<Cause::budget_above_room>(budget, figures.room, who_has_the_rest(figures));
}

}  // namespace reprise::replay
