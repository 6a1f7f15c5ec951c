#include "tools/doctor/calls.h"

#include <fmt/core.h>

#include <vector>

#include "preload/exports/rows.h"

namespace reprise::tools {
namespace {

template <typename Visit>
void for_each_row(Visit visit) {
  size_t count = 0;
  const Row* table = rows(&count);
  for (size_t i = 0; i < count; ++i) visit(table[i]);
}

std::vector<int> outputs_of(const Row& row) {
  std::vector<int> parameters;
  for (int i = 0; i < 32; ++i) {
    if ((row.outputs >> i & 1) != 0) parameters.push_back(i);
  }
  return parameters;
}

std::string listed(const std::vector<int>& parameters) {
  std::string text;
  for (const int parameter : parameters) text += (text.empty() ? "" : ",") + std::to_string(parameter);
  return text.empty() ? "-" : text;
}

}  // namespace

std::string calls_text() {
  constexpr const char* kLine = "{:<44} {:<13} {:<10} {:<9} {:<7} {:<8} {}\n";
  std::string text = fmt::format(kLine, "call", "class", "touches", "resident", "stream", "outputs", "waits for");
  for_each_row([&](const Row& row) {
    const auto stream = static_cast<int>(row.stream);
    text += fmt::format(kLine, row.symbol, name_of(row.row_class), name_of(row.touches),
                        needs_all_resident(row) ? "all" : "-", stream < 0 ? "-" : std::to_string(stream),
                        listed(outputs_of(row)), row.waits == Waits::no ? "-" : name_of(row.waits));
  });
  return text;
}

nlohmann::ordered_json calls_json() {
  auto list = nlohmann::ordered_json::array();
  for_each_row([&](const Row& row) {
    nlohmann::ordered_json one = {{"call", row.symbol},
                                  {"base", row.base},
                                  {"version", row.version},
                                  {"class", name_of(row.row_class)},
                                  {"touches", name_of(row.touches)},
                                  {"all_resident", needs_all_resident(row)}};
    if (row.stream != StreamArgument::no) one["stream"] = static_cast<int>(row.stream);
    one["outputs"] = outputs_of(row);
    one["waits"] = name_of(row.waits);
    list.push_back(std::move(one));
  });
  return list;
}

}  // namespace reprise::tools
