#include "tools/device/engines/activity.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "tools/device/base/thread.h"

namespace reprise::sim {
namespace {

struct Records {
  std::mutex mutex;
  std::vector<RepriseSimActivity> waiting;
};

Records& records() {
  static Records& instance = *new Records;
  return instance;
}

}  // namespace

std::atomic<bool> activity_enabled{false};

void store_activity(const RepriseSimActivity& record) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  all.waiting.push_back(record);
}

uint64_t current_activity() noexcept {
  const uint32_t depth = std::min(thread_state.activity_depth, kActivityDepth);
  return depth == 0 ? 0 : thread_state.activity_ids[depth - 1];
}

uint64_t current_call() noexcept {
  static constinit std::atomic<uint64_t> calls{0};
  return thread_state.call != 0 ? thread_state.call : calls.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace reprise::sim

using namespace reprise::sim;

void repriseSimActivityEnable(int enabled) { activity_enabled.store(enabled != 0); }

void repriseSimActivityPush(uint64_t id) {
  const uint32_t depth = thread_state.activity_depth++;
  if (depth < kActivityDepth) thread_state.activity_ids[depth] = id;
}

void repriseSimActivityPop() {
  if (thread_state.activity_depth > 0) --thread_state.activity_depth;
}

void repriseSimPerform(uint64_t call) { thread_state.call = call; }

unsigned repriseSimActivityRead(RepriseSimActivity* out, unsigned capacity) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  const size_t count = std::min<size_t>(capacity, all.waiting.size());
  const auto end = all.waiting.begin() + static_cast<ptrdiff_t>(count);
  std::copy(all.waiting.begin(), end, out);
  all.waiting.erase(all.waiting.begin(), end);
  return static_cast<unsigned>(count);
}
