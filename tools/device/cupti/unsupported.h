// The answer of everything that CUPTI does. Caller: entries.cpp.
#pragma once

namespace reprise::sim::cupti {

// Says so on stderr, once. Returns CUPTI_ERROR_NOT_SUPPORTED.
int unsupported() noexcept;

}  // namespace reprise::sim::cupti
