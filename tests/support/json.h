// JSON for tests. Its templates are compiled once, in json.cpp: each test would spend a second on them. Every test that
// reads JSON includes this header, and names JSON in its reprise_test().
#pragma once
#include <nlohmann/json.hpp>
#include <string>

// Declared where EXTERN is extern; json.cpp defines them.
#define REPRISE_JSON_TEMPLATES(EXTERN, JSON)                                              \
  EXTERN template class detail::serializer<JSON>;                                         \
  EXTERN template class detail::json_sax_dom_parser<JSON>;                                \
  EXTERN template class detail::lexer<JSON, detail::iterator_input_adapter<Characters>>;  \
  EXTERN template class detail::parser<JSON, detail::iterator_input_adapter<Characters>>; \
  EXTERN template class detail::lexer<JSON, detail::iterator_input_adapter<const char*>>; \
  EXTERN template class detail::parser<JSON, detail::iterator_input_adapter<const char*>>;

namespace nlohmann {
using Characters = std::string::const_iterator;
extern template class basic_json<>;
extern template class basic_json<ordered_map>;
REPRISE_JSON_TEMPLATES(extern, json)
REPRISE_JSON_TEMPLATES(extern, ordered_json)
}  // namespace nlohmann
