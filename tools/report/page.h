// The page's files (tools/report/page/), embedded at build time. Callers: report.cpp, simulate/page.cpp.
#pragma once

namespace reprise::report {

extern const char* const kPageHtml;
extern const char* const kPageStyle;
extern const char* const kPageScript;
extern const char* const kCompareScript;  // of the page that compares two runs, or two plans
extern const char* const kChartLibrary;   // dygraphs, with its licence
extern const char* const kChartStyle;
extern const char* const kSimulationScript;  // of the page of `reprise simulate`, in the place of the report's

}  // namespace reprise::report
