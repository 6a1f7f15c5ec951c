// The sample as a report's inputs, and the words of sections. Callers: the tests of this folder.
#pragma once
#include <string>

#include "tests/support/sample.h"
#include "tools/report/report.h"

namespace reprise::report {

struct Sample {
  trace::Trace trace = tools::test::sample_trace();
  plan::Plan plan = tools::test::sample_plan();
  RunLog log = parse_run_log(tools::test::sample_run_log());
  Inputs inputs() const {
    Inputs inputs{&trace, &plan, &log};
    inputs.bound_ns = 360;
    return inputs;
  }
};

inline std::string text_of(const Json& sentences) {
  std::string text;
  for (const Json& one : sentences)
    text += one["tone"].get<std::string>() + ": " + one["text"].get<std::string>() + "\n";
  return text;
}

inline std::string text_of_cards(const Json& cards) {
  std::string text;
  for (const Json& one : cards) {
    text += one["label"].get<std::string>() + ": " + one["value"].get<std::string>() + "; " +
            one["detail"].get<std::string>() + "\n";
  }
  return text;
}

}  // namespace reprise::report
