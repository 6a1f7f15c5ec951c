// Controls of the scripted driver, a libcuda.so.1 for tests of the hooks: every exported function records its arguments
// and answers what the test says; a few make up plausible results. Nothing is simulated.
#pragma once
#include <cstdint>

struct ScriptedCall {
  uint64_t count;         // calls so far
  uint64_t integers[12];  // of the last call: six registers, then the stack
  double real;            // first floating-point register, as bits of a float in its low half
};

struct ScriptedParameter {
  uint64_t offset;
  uint64_t bytes;
};

// Found by name in the library (see scripted.h).
extern "C" {
void scripted_reset();
ScriptedCall scripted_call(const char* symbol);
void scripted_answer(const char* symbol, int result);
// The layout that every kernel has; count < 0: the driver cannot tell.
void scripted_layout(const ScriptedParameter* parameters, int count);
// Nobody tells the layout before cuFuncLoad.
void scripted_unloaded();
// The next question for this parameter is answered as if there were none.
void scripted_deny_parameter(int64_t index);
// The address that cuGetProcAddress gives next: that of this symbol; nullptr: success without a function.
void scripted_procaddress(const char* symbol);
// ... and what it gives to who asks with a version above 13000.
void scripted_newer_procaddress(const char* symbol);
// Called inside every function named `symbol`: the driver calling back into the program.
void scripted_reenter(const char* symbol, void (*callback)());
// Every graph has one node of this type (< 0: none); a memset goes to `address`.
void scripted_node(int type, uint64_t address);
// All streams capture from now on (or do not).
void scripted_capturing(int status);
}
