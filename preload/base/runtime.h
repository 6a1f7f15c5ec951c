// What is switched on in this process: the handler that calls go to, the recorder, and the flags that hooks and thunks
// test. Written by entry alone, before the flags are set (identify_kernels() by whoever asks); read by every hook.
#pragma once
#include <cstdint>

namespace reprise {

class ActivitySource;
class Defragmenter;
class Handler;
class Recorder;

struct Runtime {
  Handler* handler = nullptr;    // never nullptr while kWatching is set
  Recorder* recorder = nullptr;  // nullptr: not recording
  ActivitySource* activity = nullptr;
  Defragmenter* defragmenter = nullptr;  // alone: then there is no handler and nothing is watched
  int exit_code = -1;                    // of this process, while it ends by exit(); -1: not known
};

namespace detail {
extern Runtime runtime;
extern bool defragmenting;
extern bool identifying;
}  // namespace detail
inline const Runtime& runtime() noexcept { return detail::runtime; }

inline constexpr uint8_t kWatching = 1;  // hooks understand calls and hand them to the handler
inline constexpr uint8_t kManaging = 2;  // the handler manages memory

}  // namespace reprise

// Tested by the thunks as well (thunks.S), hence the plain name. Zero until entry has started.
extern "C" uint8_t reprise_watch;

namespace reprise {

inline uint8_t watch_flags() noexcept { return __atomic_load_n(&reprise_watch, __ATOMIC_ACQUIRE); }
// Memory calls go to the defragmenter.
inline bool defragmenting() noexcept { return __atomic_load_n(&detail::defragmenting, __ATOMIC_ACQUIRE); }
// Launches say which kernel they are of in all programs (Command::kernel), where they may be repeated: somebody asks.
inline bool identifying() noexcept { return __atomic_load_n(&detail::identifying, __ATOMIC_ACQUIRE); }
inline void identify_kernels() noexcept { __atomic_store_n(&detail::identifying, true, __ATOMIC_RELEASE); }
inline bool managing() noexcept { return (watch_flags() & kManaging) != 0; }

}  // namespace reprise
