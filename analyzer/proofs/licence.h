// Whose code may not be disassembled: the licence of NVIDIA's libraries forbids it. Callers: `reprise code`.
#pragma once
#include <string_view>

namespace reprise::code {

inline constexpr const char* kNotDisassembled = "one of NVIDIA's libraries, whose licence forbids to disassemble it";

bool is_nvidias_file(std::string_view path);
// Where such a library is linked into another one.
bool is_nvidias(std::string_view kernel);

}  // namespace reprise::code
