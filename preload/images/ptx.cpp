// PTX text: kernels (.entry) with their parameters, and module-level .global and .const variables with initial values.
// Instructions are skipped: the simulated device runs twins, not PTX.
#include <algorithm>
#include <charconv>
#include <string>

#include "preload/images/parsers.h"
#include "preload/trace/signature.h"

namespace reprise::images {
namespace {

constexpr uint64_t kMostVariableBytes = uint64_t{1} << 31;

Status corrupt_ptx(const std::string& what) { return {StatusCode::corrupt, "PTX: " + what}; }

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '$' || c == '%' || c == '-' || c == '+';
}

// Cuts the text into words (identifiers, directives, numbers), quoted strings and single signs; drops comments.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { advance(); }

  // The token in front; empty at the end.
  std::string_view peek() const { return token_; }
  std::string_view take() {
    const std::string_view token = token_;
    advance();
    return token;
  }
  bool accept(std::string_view wanted) {
    if (token_ != wanted) return false;
    advance();
    return true;
  }

 private:
  bool skip_comment() {
    if (text_.starts_with("//")) {
      text_.remove_prefix(std::min(text_.find('\n'), text_.size()));
    } else if (text_.starts_with("/*")) {
      const size_t end = text_.find("*/", 2);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 2);
    } else {
      return false;
    }
    return true;
  }

  void advance() {
    constexpr std::string_view kSpace = " \t\r\n\f\v";
    do text_.remove_prefix(std::min(text_.find_first_not_of(kSpace), text_.size()));
    while (skip_comment());
    size_t length = text_.empty() ? 0 : 1;
    if (length != 0 && text_[0] == '"') {
      const size_t end = text_.find('"', 1);
      length = end == std::string_view::npos ? text_.size() : end + 1;
    } else if (length != 0 && in_word(text_[0])) {
      while (length < text_.size() && in_word(text_[length])) ++length;
    }
    token_ = text_.substr(0, length);
    text_.remove_prefix(length);
  }

  std::string_view text_;
  std::string_view token_;
};

// Bytes of a fundamental type such as ".u64", 0 for any other word.
uint32_t type_bytes(std::string_view type) {
  static constexpr std::pair<std::string_view, uint32_t> kTypes[] = {
      {".u8", 1},   {".s8", 1},  {".b8", 1},  {".u16", 2},   {".s16", 2},    {".b16", 2},        {".f16", 2},
      {".bf16", 2}, {".u32", 4}, {".s32", 4}, {".b32", 4},   {".f32", 4},    {".f16x2", 4},      {".u64", 8},
      {".s64", 8},  {".b64", 8}, {".f64", 8}, {".b128", 16}, {".texref", 8}, {".samplerref", 8}, {".surfref", 8}};
  for (const auto& [name, bytes] : kTypes) {
    if (name == type) return bytes;
  }
  return 0;
}

// Decimal, 0x hexadecimal, 0f and 0d bit patterns (with a sign for integers); false for symbols.
bool parse_number(std::string_view word, uint64_t& value) {
  const bool negative = word.starts_with('-');
  if (negative) word.remove_prefix(1);
  while (!word.empty() && (word.back() == 'U' || word.back() == 'u')) word.remove_suffix(1);
  int base = 10;
  if (word.size() > 2 && word[0] == '0' && std::string_view("xXfFdD").find(word[1]) != std::string_view::npos) {
    word.remove_prefix(2);
    base = 16;
  }
  const auto end = word.data() + word.size();
  const auto result = std::from_chars(word.data(), end, value, base);
  if (negative) value = uint64_t{0} - value;
  return result.ec == std::errc() && result.ptr == end && !word.empty();
}

// One variable or parameter declaration, from its type on.
struct Declaration {
  std::string_view name;
  uint32_t element_bytes = 0;
  uint32_t alignment = 0;
  uint64_t count = 1;
};

bool parse_declaration(Tokens& tokens, Declaration& out) {
  uint32_t vector = 1;
  while (tokens.peek().starts_with('.')) {
    const std::string_view word = tokens.take();
    uint64_t number = 0;
    if (const uint32_t bytes = type_bytes(word)) out.element_bytes = bytes;
    if (word == ".v2") vector = 2;
    if (word == ".v4") vector = 4;
    if (word == ".align" && parse_number(tokens.take(), number)) out.alignment = static_cast<uint32_t>(number);
    if (word == ".attribute" || word == ".ptr") {
      if (!tokens.accept("(")) continue;
      while (!tokens.peek().empty() && !tokens.accept(")")) tokens.take();
    }
  }
  out.element_bytes *= vector;
  if (out.alignment == 0) out.alignment = out.element_bytes;
  out.name = tokens.take();
  while (tokens.accept("[")) {
    uint64_t extent = 0;  // "[]": as many as are initialised
    if (tokens.peek() != "]" && !parse_number(tokens.take(), extent)) return false;
    if (!tokens.accept("]")) return false;
    if (extent > kMostVariableBytes || out.count * extent > kMostVariableBytes) return false;
    out.count *= extent;
  }
  return out.element_bytes != 0 && !out.name.empty();
}

class PtxReader {
 public:
  explicit PtxReader(std::string_view text) : tokens_(text) {}

  Result<Image> read() {
    if (!tokens_.accept(".version")) return corrupt_ptx("the text does not begin with .version");
    bool external = false;
    while (!tokens_.peek().empty()) {
      const std::string_view word = tokens_.take();
      Status status;
      if (word == ".extern") {
        external = true;
        continue;
      }
      if (word == ".entry") status = read_kernel();
      if (word == ".global" || word == ".const") status = read_global(word == ".const", external);
      if (word == "{") skip_block();
      if (!status.ok()) return status;
      if (word != ".visible" && word != ".weak" && word != ".common") external = false;
    }
    return std::move(image_);
  }

 private:
  void skip_block() {
    for (uint64_t depth = 1; depth != 0 && !tokens_.peek().empty();) {
      const std::string_view word = tokens_.take();
      if (word == "{") ++depth;
      if (word == "}") --depth;
    }
  }

  Status read_kernel() {
    KernelImage kernel;
    kernel.name = tokens_.take();
    uint64_t offset = 0;
    if (tokens_.accept("(")) {
      while (!tokens_.accept(")")) {
        Declaration parameter;
        if (!tokens_.accept(".param") || !parse_declaration(tokens_, parameter)) {
          return corrupt_ptx("kernel " + kernel.name + " has a parameter that cannot be read");
        }
        const uint64_t alignment = std::max<uint64_t>(parameter.alignment, 1);
        offset = (offset + alignment - 1) / alignment * alignment;
        const uint64_t bytes = parameter.count * parameter.element_bytes;
        if (offset + bytes > UINT16_MAX) return corrupt_ptx("kernel " + kernel.name + " has too many parameters");
        kernel.parameters.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)});
        offset += bytes;
        tokens_.accept(",");
      }
    }
    kernel.parameters_known = true;
    read_directives(kernel);
    if (tokens_.accept("{")) read_body(kernel);
    if (!kernel.name.empty()) image_.kernels.push_back(std::move(kernel));
    return {};
  }

  void read_directives(KernelImage& kernel) {
    while (!tokens_.peek().empty() && tokens_.peek() != "{" && tokens_.peek() != ";") {
      if (!tokens_.accept(".maxntid")) {
        tokens_.take();
        continue;
      }
      uint64_t product = 1;
      uint64_t extent = 0;
      do {
        if (!parse_number(tokens_.take(), extent) || extent > 1024) return;
        product *= extent;
      } while (tokens_.accept(","));
      if (product >= 1 && product <= 1024) kernel.max_threads = static_cast<uint32_t>(product);
    }
  }

  // Only what concerns the launch: the kernel's own shared variables.
  void read_body(KernelImage& kernel) {
    uint64_t shared = 0;
    for (uint64_t depth = 1; depth != 0 && !tokens_.peek().empty();) {
      const std::string_view word = tokens_.take();
      if (word == "{") ++depth;
      if (word == "}") --depth;
      Declaration variable;
      if (word != ".shared" || !parse_declaration(tokens_, variable)) continue;
      const uint64_t alignment = std::max<uint64_t>(variable.alignment, 1);
      shared = (shared + alignment - 1) / alignment * alignment + variable.count * variable.element_bytes;
    }
    kernel.static_shared_bytes = static_cast<uint32_t>(std::min<uint64_t>(shared, UINT32_MAX));
  }

  Status read_global(bool constant, bool external) {
    Declaration variable;
    if (!parse_declaration(tokens_, variable)) return corrupt_ptx("a variable that cannot be read");
    GlobalImage global;
    global.name = variable.name;
    global.constant = constant;
    if (tokens_.accept("=")) read_initial(variable.element_bytes, global.initial);
    global.bytes = variable.count * variable.element_bytes;
    if (global.bytes == 0) global.bytes = global.initial.size();
    if (global.bytes > kMostVariableBytes) return corrupt_ptx("variable " + global.name + " is too large");
    if (global.initial.size() > global.bytes) global.initial.resize(global.bytes);
    if (!external) image_.globals.push_back(std::move(global));
    return {};
  }

  // Numbers up to the semicolon, nested braces flattened. A symbol (an address) leaves zeros.
  void read_initial(uint32_t element_bytes, std::vector<uint8_t>& initial) {
    while (!tokens_.peek().empty() && tokens_.peek() != ";") {
      const std::string_view word = tokens_.take();
      if (word == "{" || word == "}" || word == ",") continue;
      uint64_t value = 0;
      if (!parse_number(word, value)) value = 0;
      const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
      for (uint32_t i = 0; i < element_bytes; ++i) initial.push_back(i < sizeof value ? bytes[i] : uint8_t{0});
    }
  }

  Tokens tokens_;
  Image image_;
};

}  // namespace

Result<Image> parse_ptx(std::string_view text) {
  Result<Image> image = PtxReader(text).read();
  if (!image.ok()) return image;
  const auto has = [text](std::string_view what) { return text.find(what) != std::string_view::npos; };
  image.value().prints = has(kPrintf);
  image.value().allocates = has(kMalloc) || has(kFree);
  image.value().content = trace::hash_bytes(text.data(), text.size());
  return image;
}

}  // namespace reprise::images
