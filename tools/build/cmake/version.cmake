# Writes version.cpp: the commit that is built, and its date. Run at each build, as `cmake -P`, with SOURCE, VERSION and OUTPUT.
# An archive of git's names its commit in tools/build/version.txt; a checkout is asked; else neither is known.
cmake_minimum_required(VERSION 3.25)
set(commit "")
set(date "")
set(changed false)

file(READ "${SOURCE}/tools/build/version.txt" archived)
if(archived MATCHES "^([0-9a-f]+) ([0-9-]+)")
  set(commit "${CMAKE_MATCH_1}")
  set(date "${CMAKE_MATCH_2}")
else()
  find_program(git git)
  macro(ask_git result)
    execute_process(COMMAND "${git}" -C "${SOURCE}" ${ARGN} OUTPUT_VARIABLE ${result} RESULT_VARIABLE failed ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
  endmacro()
  # A source folder without a history may lie in somebody else's checkout.
  if(git)
    ask_git(top rev-parse --show-cdup)
    if(failed EQUAL 0 AND top STREQUAL "")
      ask_git(said log -1 --format=%H\ %cs)
      if(failed EQUAL 0 AND said MATCHES "^([0-9a-f]+) ([0-9-]+)$")
        set(commit "${CMAKE_MATCH_1}")
        set(date "${CMAKE_MATCH_2}")
        ask_git(differences status --porcelain --untracked-files=no)
        if(NOT differences STREQUAL "")
          set(changed true)
        endif()
      endif()
    endif()
  endif()
endif()
string(SUBSTRING "${commit}" 0 12 commit)

set(text "// Made by tools/build/cmake/version.cmake.
#include \"tools/cli/version.h\"

namespace reprise::tools {

const Version kVersion = {\"${VERSION}\", \"${commit}\", \"${date}\", ${changed}};

}  // namespace reprise::tools
")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT "${before}" STREQUAL "${text}")
  file(WRITE "${OUTPUT}" "${text}")
endif()
