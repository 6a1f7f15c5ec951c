#include "tools/lab/probe/measure/lanes.h"

#include <algorithm>
#include <limits>

namespace reprise::probe {
namespace {

constexpr double kGroupNanoseconds = 200'000;  // items between two events: an event must not cost what it measures
constexpr size_t kMostGroups = 400;

// One lane's progress: an event after each group of items.
struct Progress {
  size_t group_items = 1;
  size_t groups_wanted = 1;
  std::vector<Event> marks;
  std::vector<double> end_ns;  // of each group, from the common start
};

Status issue_group(const Device& device, Lane& lane, Progress& progress) {
  for (size_t i = 0; i < progress.group_items; ++i) PROBE_TRY(lane.issue(lane.stream.get()));
  auto mark = device.make_event();
  if (!mark.ok()) return mark.status();
  PROBE_CALL(device.driver(), cuEventRecord, mark.value().get(), lane.stream.get());
  progress.marks.push_back(std::move(mark.value()));
  return Status::success();
}

// Issues the groups of all lanes in the order in which they would end alone, so that no lane waits for the host.
Status issue_all(const Device& device, std::vector<Lane>& lanes, std::vector<Progress>& all) {
  while (true) {
    size_t next = lanes.size();
    double earliest = std::numeric_limits<double>::max();
    for (size_t i = 0; i < lanes.size(); ++i) {
      const double issued = static_cast<double>(all[i].marks.size() * all[i].group_items) * lanes[i].item_ns;
      if (all[i].marks.size() < all[i].groups_wanted && issued < earliest) {
        earliest = issued;
        next = i;
      }
    }
    if (next == lanes.size()) return Status::success();
    PROBE_TRY(issue_group(device, lanes[next], all[next]));
  }
}

// Items per second of one lane up to `window_ns`. A group that the window cuts counts with the share inside.
double rate_within(const Progress& progress, double window_ns) {
  double groups = 0;
  double before = 0;
  for (const double end : progress.end_ns) {
    if (end > window_ns) {
      groups += (window_ns - before) / (end - before);
      break;
    }
    groups += 1;
    before = end;
  }
  return groups * static_cast<double>(progress.group_items) / window_ns * 1e9;
}

}  // namespace

Status calibrate(const Device& device, Lane& lane) {
  constexpr double kLongEnough = 5e6;  // nanoseconds: below it, an item is timed as one of several
  const auto time_of = [&](unsigned items) {
    return device_time(device, lane.stream.get(), [&]() -> Status {
      for (unsigned i = 0; i < items; ++i) PROBE_TRY(lane.issue(lane.stream.get()));
      return Status::success();
    });
  };
  for (const unsigned next : {1u, 8u, 8u}) {  // the first is the warm-up
    const unsigned items = lane.item_ns > kLongEnough ? 1 : next;
    const auto time = time_of(items);
    if (!time.ok()) return time.status();
    lane.item_ns = std::max(time.value() / items, 1.0);
    if (lane.item_ns > 10 * kLongEnough) break;
  }
  return Status::success();
}

Result<std::vector<double>> run_lanes(const Device& device, std::vector<Lane>& lanes, double window_ns) {
  const Driver& driver = device.driver();
  std::vector<Progress> all(lanes.size());
  auto start = device.make_event();
  if (!start.ok()) return start.status();
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i].item_ns == 0) PROBE_TRY(calibrate(device, lanes[i]));
    all[i].group_items = std::max<size_t>(1, static_cast<size_t>(kGroupNanoseconds / lanes[i].item_ns));
    const double group_ns = lanes[i].item_ns * static_cast<double>(all[i].group_items);
    all[i].groups_wanted = std::clamp<size_t>(static_cast<size_t>(window_ns / group_ns), 2, kMostGroups);
  }
  PROBE_TRY(device.synchronize());
  PROBE_CALL(driver, cuEventRecord, start.value().get(), lanes[0].stream.get());
  for (Lane& lane : lanes) PROBE_CALL(driver, cuStreamWaitEvent, lane.stream.get(), start.value().get(), 0);
  PROBE_TRY(issue_all(device, lanes, all));
  PROBE_TRY(device.synchronize());
  double window = std::numeric_limits<double>::max();
  for (Progress& progress : all) {
    for (const Event& mark : progress.marks) {
      float milliseconds = 0;
      PROBE_CALL(driver, cuEventElapsedTime, &milliseconds, start.value().get(), mark.get());
      progress.end_ns.push_back(std::max(static_cast<double>(milliseconds) * 1e6, 1.0));
    }
    window = std::min(window, progress.end_ns.back());
  }
  std::vector<double> rates;
  rates.reserve(lanes.size());
  for (const Progress& progress : all) rates.push_back(rate_within(progress, window));
  return rates;
}

}  // namespace reprise::probe
