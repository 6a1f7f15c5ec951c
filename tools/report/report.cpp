#include "tools/report/report.h"

#include "tools/report/page.h"

namespace reprise::report {
namespace {

std::string replaced(std::string text, const std::string& mark, const std::string& with) {
  const size_t at = text.find(mark);
  return at == std::string::npos ? text : text.replace(at, mark.size(), with);
}

// Inside a script element only "<" could end it or open a comment.
std::string escaped_for_script(const std::string& json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

std::string escaped_for_html(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

Json make_data(const Inputs& inputs) {
  const Facts facts = collect_facts(inputs);
  Json data;
  data["version"] = 2;
  data["program"] = facts.program;
  data["budget"] = facts.budget;
  data["budget_words"] = budget_words(inputs);
  data["policy"] = inputs.plan != nullptr ? inputs.plan->policy : "";
#define REPORT_SECTION(name) data[#name] = name##_section(inputs);
#include "tools/report/sections.def"
#undef REPORT_SECTION
  return data;
}

std::string as_file(const Json& data) { return data.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string make_page(const Json& data) { return make_page(data, kPageScript, true); }

std::string make_page(const Json& data, const char* script, bool with_charts) {
  const std::string program = data.value("program", "");
  // Our own files first, texts of the program last, each mark before the place where such a text could repeat it.
  std::string page = replaced(kPageHtml, "{{style}}", std::string(with_charts ? kChartStyle : "") + kPageStyle);
  page = replaced(std::move(page), "{{library}}", with_charts ? kChartLibrary : "");
  page = replaced(std::move(page), "{{script}}", script);
  page = replaced(std::move(page), "{{data}}",
                  escaped_for_script(data.dump(-1, ' ', false, Json::error_handler_t::replace)));
  return replaced(std::move(page), "{{title}}", escaped_for_html("Reprise: " + program));
}

}  // namespace reprise::report
