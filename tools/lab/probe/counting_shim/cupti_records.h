// CUPTI's own list of the kernels that ran, gathered inside the process that the shim counts. CUPTI is opened at run
// time (REPRISE_COUNT_CUPTI names it). Caller: shim, after the first cuInit.
#pragma once

namespace reprise::count {

// Does nothing when REPRISE_COUNT_CUPTI is not set; otherwise how it went is told to count_cupti().
void start_records() noexcept;
// Hands all records that there are to count_record(). The program's work must be complete.
void finish_records() noexcept;

}  // namespace reprise::count
