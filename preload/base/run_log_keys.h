// The keys of the run log as constants, from run_log_keys.def: run_log::iteration::wall_ns and the like, each with the
// kind of line that it stands on and the type of its value. Code that names a key without a row does not compile.
// Callers: the writers (replay/base/run_log, preload/defragment) and the readers (tools/cli/run_log_value,
// tools/export).
#pragma once

namespace reprise::run_log {

// Types of values.
struct Number {};
struct Text {};

// A kind of line. Each has a `Tag` of its own, so that a key of another kind is refused by the compiler.
template <typename Tag>
struct LineKind {
  const char* name;
};

// `old_name` is read, too, never written; "" for none.
template <typename Tag, typename Value>
struct Key {
  const char* name;
  const char* old_name;
};

// One of the few things that a text may say.
template <typename Tag>
struct Word {
  const char* name;
  const char* old_name;
};

#define RUN_LOG_LINE(kind, help)                                  \
  namespace kind {                                                \
  struct Tag {};                                                  \
  inline constexpr ::reprise::run_log::LineKind<Tag> line{#kind}; \
  }
#define RUN_LOG_KEY(kind, name, Value, unit, old_name, help)                                      \
  namespace kind {                                                                                \
  inline constexpr ::reprise::run_log::Key<Tag, ::reprise::run_log::Value> name{#name, old_name}; \
  }
#define RUN_LOG_WORD(kind, key, word, old_word, help)                   \
  namespace kind {                                                      \
  inline constexpr ::reprise::run_log::Word<Tag> word{#word, old_word}; \
  }
#include "preload/base/run_log_keys.def"

}  // namespace reprise::run_log
