// What is different of a live call and the one that a plan has there, where both have one name: "expected memset, got
// memset" says nothing. Caller: the plan follower, where a program leaves its plan.
#pragma once
#include <string>

#include "preload/calls/command.h"
#include "replay/plan/matcher.h"

namespace reprise::replay {

// As a clause, "8.0 MiB instead of 4.0 MiB"; empty: they are calls of other kinds or names, which
// says it.
std::string difference(const Matcher& matcher, const Command& command) noexcept;
std::string difference(const Matcher& matcher, const AllocateCall& call) noexcept;
std::string difference(const Matcher& matcher, const FreeCall& call) noexcept;

}  // namespace reprise::replay
