// Messages of the preloaded library: one line each on stderr, prefix "reprise: ". Callers: every part in the victim
// process. Never stdout, never a buffer that a crash loses; the default level says warnings only.
#pragma once

namespace reprise {

enum class LogLevel : int { warn = 0, info = 1, debug = 2 };

// Set once by the configuration, before any other thread of ours runs.
void set_log_level(LogLevel level) noexcept;
bool log_enabled(LogLevel level) noexcept;

// Told of each warning that goes to stderr, without the prefix: the run log has them, too. nullptr: nobody is.
using LogListener = void (*)(const char* text) noexcept;
void set_log_listener(LogListener listener) noexcept;

// printf-like; longer than 1000 bytes is cut. One write(2), so that lines of several threads do not mix.
void log_line(LogLevel level, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

}  // namespace reprise
