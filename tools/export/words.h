// The words of our own messages, as words.cmake finds them in the sources of what writes run logs: whatever else stands
// in such a message may be a name of the user's. Caller: redact.
#pragma once
#include <string_view>
#include <vector>

namespace reprise::exports {

extern const std::vector<std::string_view> kOurWords;

}  // namespace reprise::exports
