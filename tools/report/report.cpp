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
  data["verdict"] = verdict_section(inputs);
  data["cards"] = headline_section(inputs);
  data["advice"] = advice_section(inputs);
  data["budget_curve"] = budget_curve_section(inputs);
  data["time_went"] = time_went_section(inputs);
  data["sentences"] = sentences_section(inputs);
  data["iteration_memory"] = iteration_memory_section(inputs);
  data["run_memory"] = run_memory_section(inputs);
  data["peak"] = peak_section(inputs);
  data["tensor_table"] = tensor_table_section(inputs);
  data["passing_on"] = passing_on_section(inputs);
  data["timelines"] = timelines_section(inputs);
  data["tensors"] = tensors_section(inputs);
  data["waits"] = waits_section(inputs);
  data["totals"] = totals_section(inputs);
  data["kernels"] = kernels_section(inputs);
  data["sites"] = sites_section(inputs);
  data["iterations"] = iterations_section(inputs);
  data["modes"] = modes_section(inputs);
  data["in_force"] = in_force_section(inputs);
  data["repetitions"] = repetitions(inputs);
  data["iterations_in_all"] = inputs.log != nullptr ? all_iterations(*inputs.log) : 0;
  data["divergences"] = divergences_section(inputs);
  data["unmanaged"] = unmanaged_section(inputs);
  data["about"] = about_section(inputs);
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
