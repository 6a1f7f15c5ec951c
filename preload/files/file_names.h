// Names of files that are another one in each process: "%r" is its rank in a job of several, "%p" its number, "%h" its
// host, "%%" a percent sign. Callers: the configuration, for the environment's files; the commands, for their options'.
#pragma once
#include <unistd.h>

#include <functional>
#include <string>
#include <string_view>

namespace reprise {

// Any other sequence stays as it is. `lookup` finds the variables of `process`. The rank is what torchrun, Slurm, Open
// MPI or MPICH have set, in this order; 0 where none has.
std::string expanded_name(std::string_view name, const std::function<const char*(const char* variable)>& lookup,
                          int process = getpid());
// What expanded_name() makes `name` of.
std::string protected_name(std::string_view name);

}  // namespace reprise
