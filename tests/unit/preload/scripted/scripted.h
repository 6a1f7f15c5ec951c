// The scripted driver's controls for a test that runs with REPRISE_DRIVER set to that driver. Callers: tests of hooks
// and exports.
#pragma once
#include "preload/driver/resolve.h"
#include "tests/unit/preload/scripted/scripted_driver.h"

namespace reprise {

struct Scripted {
  decltype(&scripted_reset) reset;
  decltype(&scripted_call) call;
  decltype(&scripted_answer) answer;
  decltype(&scripted_layout) layout;
  decltype(&scripted_deny_parameter) deny_parameter;
  decltype(&scripted_procaddress) procaddress;
  decltype(&scripted_unloaded) unloaded;
  decltype(&scripted_newer_procaddress) newer_procaddress;
  decltype(&scripted_reenter) reenter;
  decltype(&scripted_capturing) capturing;
  decltype(&scripted_node) node;
};

inline const Scripted& scripted() {
  static const Scripted controls = {
      reinterpret_cast<decltype(&scripted_reset)>(driver_symbol("scripted_reset")),
      reinterpret_cast<decltype(&scripted_call)>(driver_symbol("scripted_call")),
      reinterpret_cast<decltype(&scripted_answer)>(driver_symbol("scripted_answer")),
      reinterpret_cast<decltype(&scripted_layout)>(driver_symbol("scripted_layout")),
      reinterpret_cast<decltype(&scripted_deny_parameter)>(driver_symbol("scripted_deny_parameter")),
      reinterpret_cast<decltype(&scripted_procaddress)>(driver_symbol("scripted_procaddress")),
      reinterpret_cast<decltype(&scripted_unloaded)>(driver_symbol("scripted_unloaded")),
      reinterpret_cast<decltype(&scripted_newer_procaddress)>(driver_symbol("scripted_newer_procaddress")),
      reinterpret_cast<decltype(&scripted_reenter)>(driver_symbol("scripted_reenter")),
      reinterpret_cast<decltype(&scripted_capturing)>(driver_symbol("scripted_capturing")),
      reinterpret_cast<decltype(&scripted_node)>(driver_symbol("scripted_node")),
  };
  return controls;
}

}  // namespace reprise
