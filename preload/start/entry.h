// When Reprise starts and ends in a process. Callers: the cuInit hook; reprise_mark() is for programs.
#pragma once

namespace reprise {

// Before the driver's cuInit: what has to happen at exit behind the driver's own end is registered before the driver
// is.
void before_driver_starts() noexcept;

// After a successful cuInit: reads the configuration and switches on what it asks for. Does its work once; later calls
// and other threads wait for the first. Never fails: what cannot work is said on stderr and left off.
void start() noexcept;

// Ends the recording and the replay's log. Called at exit; more than once is harmless.
void finish() noexcept;

}  // namespace reprise

// Exported, optional for programs: marks a point of the program's iteration by name ("step"). Does nothing when Reprise
// does not record. Declare it weak and test its address, then the program needs no Reprise.
extern "C" void reprise_mark(const char* name) noexcept;
