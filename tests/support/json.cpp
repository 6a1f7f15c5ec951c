#include "tests/support/json.h"

namespace nlohmann {
template class basic_json<>;
template class basic_json<ordered_map>;
REPRISE_JSON_TEMPLATES(, json)
REPRISE_JSON_TEMPLATES(, ordered_json)
}  // namespace nlohmann
