#include "tests/abi/files.h"

#include <regex>

namespace reprise::abi {
namespace {

std::string without_comments(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (text.compare(at, 2, "/*") == 0) {
      const size_t end = text.find("*/", at + 2);
      if (end == std::string::npos) break;
      at = end + 2;
    } else {
      result += text[at++];
    }
  }
  return result;
}

std::vector<std::smatch> matches(const std::string& text, const std::regex& expression) {
  return {std::sregex_iterator(text.begin(), text.end(), expression), std::sregex_iterator()};
}

}  // namespace

std::vector<std::string> lines_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<std::string> lines;
  std::array<char, 4096> buffer{};
  while (pipe != nullptr && fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) {
    std::string line = buffer.data();
    while (!line.empty() && line.back() == '\n') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

std::set<std::string> exported_symbols(const std::string& library) {
  std::set<std::string> result;
  for (const std::string& line : lines_of("nm -D --defined-only '" + library + "'")) {
    std::istringstream words(line);
    std::string address, kind, name;
    words >> address >> kind >> name;
    if (name.empty() || kind == "A") continue;  // A: the version node itself
    result.insert(name.substr(0, name.find('@')));
  }
  return result;
}

std::vector<std::string> dynamic_entries(const std::string& library, const std::string& kind) {
  std::vector<std::string> result;
  for (const std::string& line : lines_of("readelf -dW '" + library + "'")) {
    if (line.find("(" + kind + ")") == std::string::npos) continue;
    const size_t begin = line.find('['), end = line.find(']', begin);
    if (begin != std::string::npos && end != std::string::npos)
      result.push_back(line.substr(begin + 1, end - begin - 1));
  }
  return result;
}

std::map<std::string, std::string> needed_versions(const std::string& library, const std::string& prefix) {
  std::map<std::string, std::string> result;
  for (const std::string& line : lines_of("readelf -W --dyn-syms '" + library + "'")) {
    const size_t at = line.find('@' + prefix);
    if (at == std::string::npos || line.find(" UND ") == std::string::npos) continue;
    const size_t name = line.rfind(' ', at) + 1;
    const size_t version = at + 1 + prefix.size();
    result[line.substr(name, at - name)] = line.substr(version, line.find(' ', version) - version);
  }
  return result;
}

std::set<std::string> declared_functions(const std::string& folder, const std::vector<std::string>& headers,
                                         const std::string& linkage) {
  std::set<std::string> result;
  const std::regex declaration("\\b" + linkage + R"(\s+(cu\w+)\s*\()");
  for (const std::string& header : headers) {
    const std::string text = without_comments(read_file(folder + "/" + header));
    for (const std::smatch& found : matches(text, declaration)) result.insert(found[1]);
    static const std::regex plain(R"(#[ \t]*define[ \t]+cu[A-Z]\w*[ \t]+(cu\w+)[ \t]*\n)");
    for (const std::smatch& found : matches(text, plain)) result.insert(found[1]);
    static const std::regex per_thread(
        R"(#[ \t]*define[ \t]+cu[a-zA-Z]\w*[ \t]+__CUDA(?:RT)?_API_(PTDS|PTSZ)\((cu\w+)\))");
    for (const std::smatch& found : matches(text, per_thread)) {
      result.insert(found[2]);
      result.insert(found[2].str() + (found[1] == "PTDS" ? "_ptds" : "_ptsz"));
    }
  }
  return result;
}

std::map<std::string, std::vector<std::string>> declared_parameters(const std::string& folder,
                                                                    const std::vector<std::string>& headers,
                                                                    const std::string& linkage) {
  std::map<std::string, std::vector<std::string>> result;
  const std::regex declaration("\\b" + linkage + R"(\s+(cu\w+)\s*\(([^;{}]*)\)\s*;)");
  for (const std::string& header : headers) {
    const std::string text = without_comments(read_file(folder + "/" + header));
    std::map<std::string, std::string> forms;  // name of the declaration -> symbol
    static const std::regex renamed(R"(#[ \t]*define[ \t]+(cu[A-Z]\w*)[ \t]+(?:__CUDA_API_PT(?:DS|SZ)\()?(cu\w+))");
    for (const std::smatch& found : matches(text, renamed)) forms[found[1]] = found[2];
    for (const std::smatch& found : matches(text, declaration)) {
      // The first declaration of a renamed name is the newer form's; an older form stands further down, under its own.
      std::string symbol = found[1];
      if (const auto form = forms.find(symbol); form != forms.end() && result.count(form->second) == 0) {
        symbol = form->second;
      }
      if (result.count(symbol) != 0) continue;
      std::vector<std::string>& parameters = result[symbol];
      std::istringstream list(found[2]);
      for (std::string one; std::getline(list, one, ',');) {
        one = std::regex_replace(one, std::regex(R"(\s+)"), " ");
        one.erase(0, one.find_first_not_of(' '));
        one.erase(one.find_last_not_of(' ') + 1);
        if (!one.empty() && one != "void") parameters.push_back(one);
      }
    }
  }
  return result;
}

std::map<std::pair<std::string, std::string>, std::set<int>> typedef_versions(const std::string& header) {
  std::map<std::pair<std::string, std::string>, std::set<int>> result;
  const std::string text = read_file(header);
  static const std::regex type(R"(PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\))");
  for (const std::smatch& found : matches(text, type)) result[{found[1], found[3]}].insert(std::stoi(found[2]));
  return result;
}

SymbolName split(const std::string& symbol) {
  static const std::regex shape(R"((cu\w+?)(_v(\d+))?(_ptsz|_ptds)?)");
  std::smatch found;
  if (!std::regex_match(symbol, found, shape)) return {symbol, 1, ""};
  return {found[1], found[3].matched ? std::stoi(found[3]) : 1, found[4]};
}

}  // namespace reprise::abi
