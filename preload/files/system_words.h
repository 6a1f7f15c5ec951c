// What the system says of a call that failed, in words for people. Callers: whoever opens files, here and in the
// victim process, off the hot path.
#pragma once
#include <string>

namespace reprise {

// Of an errno; where there are too few descriptors, how many there may be and what to do, whatever file got none.
std::string system_words(int error);

}  // namespace reprise
