// The rows of machine_keys.def for one use: rows of a macro that the includer has not defined are left out, and all
// macros are undefined again at the end. No include guard: each use includes it. Callers: machine_file,
// tools/lab/machines, tests.
#ifndef MACHINE_FIXED
#define MACHINE_FIXED(key, value, help)
#endif
#ifndef MACHINE_TEXT
#define MACHINE_TEXT(key, unit, presence, help)
#endif
#ifndef MACHINE_FLAG
#define MACHINE_FLAG(key, unit, presence, help)
#endif
#ifndef MACHINE_SIZE
#define MACHINE_SIZE(key, unit, presence, help)
#endif
#ifndef MACHINE_NUMBER
#define MACHINE_NUMBER(key, field, unit, lowest, standard, help)
#endif
#ifndef MACHINE_UNUSED_NUMBER
#define MACHINE_UNUSED_NUMBER(key, unit, lowest, help)
#endif
#include "tools/lab/probe/output/machine_keys.def"
#undef MACHINE_FIXED
#undef MACHINE_TEXT
#undef MACHINE_FLAG
#undef MACHINE_SIZE
#undef MACHINE_NUMBER
#undef MACHINE_UNUSED_NUMBER
