# Our own targets: warnings as errors, sanitizers, include root, test labels. Included by the top CMakeLists.txt.

function(reprise_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wsign-conversion -Wshadow -Werror)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  if(REPRISE_SANITIZE)
    # A finding of a sanitizer ends the program. Instrumented code makes GCC warn where nothing is wrong. Enumerations are
    # C's: a program may know later values than the headers here, and tests pass wrong ones.
    target_compile_options(${target} PRIVATE -fsanitize=${REPRISE_SANITIZE} -fno-sanitize-recover=all -fno-sanitize=enum
                           -fno-omit-frame-pointer -Wno-error)
    target_link_options(${target} PRIVATE -fsanitize=${REPRISE_SANITIZE})
  endif()
endfunction()

# Most of what the compiler reads of a small file is headers: the sources of a room are compiled as one, with headers that were
# compiled before. They share a scope then, so two of them may not give one name to different things. With REPRISE_UNITY=OFF each
# source is compiled alone, and has to include what it uses.
function(reprise_unity target)
  if(REPRISE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
endfunction()

# What rooms include most. kind: room, or tool, which has JSON, too; CLI11 has objects, for which each source that includes it pays.
set(REPRISE_ROOM_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstdio> <cstdlib> <cstring> <deque> <filesystem> <fmt/format.h>
    <fmt/ranges.h> <fstream> <functional> <map> <memory> <mutex> <new> <numeric> <optional> <queue> <set> <span> <sstream> <string>
    <string_view> <thread> <tuple> <unordered_map> <unordered_set> <utility> <variant> <vector>)
function(reprise_precompiled target kind)
  if(NOT REPRISE_UNITY)
    return()
  endif()
  if(NOT TARGET reprise_${kind}_headers)
    set(source "${CMAKE_BINARY_DIR}/${kind}_headers.cpp")
    file(GENERATE OUTPUT "${source}" CONTENT "// Its headers are what it is for.\n")
    add_library(reprise_${kind}_headers STATIC "${source}")
    reprise_options(reprise_${kind}_headers)
    target_link_libraries(reprise_${kind}_headers PRIVATE reprise_fmt Threads::Threads)
    target_precompile_headers(reprise_${kind}_headers PRIVATE ${REPRISE_ROOM_HEADERS})
    if(kind STREQUAL tool)
      reprise_runs_once(reprise_tool_headers)
      target_link_libraries(reprise_tool_headers PRIVATE nlohmann_json::nlohmann_json)
      target_precompile_headers(reprise_tool_headers PRIVATE <nlohmann/json.hpp>)
    endif()
  endif()
  target_link_libraries(${target} PRIVATE reprise_fmt)  # whose macros are the headers'
  target_precompile_headers(${target} REUSE_FROM reprise_${kind}_headers)
endfunction()

# Code that runs once and costs more to optimise than to run: the command line, reports, tests.
function(reprise_runs_once target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# reprise_library(name [RUNS_ONCE] sources...): a static, position independent library with our options.
function(reprise_library target)
  cmake_parse_arguments(ARG "RUNS_ONCE" "" "" ${ARGN})
  add_library(${target} STATIC ${ARG_UNPARSED_ARGUMENTS})
  reprise_options(${target})
  reprise_unity(${target})
  set(kind room)
  if(ARG_RUNS_ONCE)
    reprise_runs_once(${target})
    set(kind tool)
  endif()
  reprise_precompiled(${target} ${kind})
endfunction()

# The headers that all tests would compile for themselves: minutes of a build. kind: plain, or json, which has JSON too.
function(reprise_test_headers kind)
  set(target reprise_${kind}_headers)
  if(TARGET ${target})
    return()
  endif()
  set(source ${CMAKE_BINARY_DIR}/${kind}_headers.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "int main() {}\n")
  add_executable(${target} ${source})  # no library: compiled as the tests are, -fPIE
  reprise_test_options(${target})
  target_link_libraries(${target} PRIVATE GTest::gtest Threads::Threads)
  target_precompile_headers(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/test.h")
  if(kind STREQUAL json)
    target_link_libraries(${target} PRIVATE reprise_test_json)
    target_precompile_headers(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/json.h")
  endif()
endfunction()

# What a test does costs less than to optimise it.
function(reprise_test_options target)
  reprise_options(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
endfunction()

# reprise_test(name LABELS unit [sim ...] SOURCES a.cpp ... LIBRARIES x ... [JSON]): one GoogleTest program = one ctest entry.
# Every test that needs no GPU carries the label `sim`; GPU tests carry `gpu` and exit 77 when there is none.
# JSON: it reads some (tests/support/json.h).
function(reprise_test target)
  cmake_parse_arguments(ARG "JSON" "" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  reprise_test_options(${target})
  target_link_libraries(${target} PRIVATE ${ARG_LIBRARIES} GTest::gtest GTest::gtest_main Threads::Threads)
  set(headers plain)
  if(ARG_JSON)
    set(headers json)
    target_link_libraries(${target} PRIVATE reprise_test_json)
  endif()
  reprise_test_headers(${headers})
  target_link_libraries(${target} PRIVATE reprise_fmt)  # whose macros are the headers'
  target_precompile_headers(${target} REUSE_FROM reprise_${headers}_headers)
  add_test(NAME ${target} COMMAND ${target})
  set_tests_properties(${target} PROPERTIES LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT 300
                       ENVIRONMENT "${ARG_ENVIRONMENT}")
  # Long ones begin first where nothing ran before, so that no processor is idle in the end.
  if("e2e" IN_LIST ARG_LABELS OR "property" IN_LIST ARG_LABELS)
    set_tests_properties(${target} PROPERTIES COST 60)
  endif()
endfunction()
