# What runs kernels: host twins, else dataflow hashing. Included by the CMakeLists.txt of the simulated device.
reprise_library(reprise_tools_device_twins twins/executor.cpp twins/hash_log.cpp twins/hashing.cpp
                twins/natures.cpp twins/parameter_kinds.cpp twins/registry.cpp)
target_link_libraries(reprise_tools_device_twins PUBLIC reprise_analyzer_code reprise_preload_images reprise_preload_structures reprise_tools_device_base
                      ${CMAKE_DL_LIBS})

# Twins and the plain run they are compared with are the same machine code on the same machine: any processor will do.
set(twin_processor "")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64 AND EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo flags REGEX "^flags.* avx2 .* bmi2 " LIMIT_COUNT 1)
  if(flags MATCHES " fma " AND flags MATCHES " movbe ")
    set(twin_processor x86-64-v3)
  endif()
endif()
set(REPRISE_TWIN_PROCESSOR "${twin_processor}" CACHE STRING
    "-march= of host twins; empty: any processor of this architecture. They run about four times faster with x86-64-v3")

# How twins run a grid. A library of its own: its few bytes of thread-local storage are of the fast, static kind, which
# would not have room for the shared memory of kernels, which is thread-local as well.
add_library(reprise_twin_blocks SHARED twins/block.cpp twins/fiber.cpp)
target_include_directories(reprise_twin_blocks PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_options(reprise_twin_blocks PRIVATE -Wall -Wextra -Wsign-conversion -Wshadow -Werror)
set_target_properties(reprise_twin_blocks PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/sim")

# reprise_twins(target source.cpp [OUTPUT name]): a library of host twins. With OUTPUT, `name` in the folder of the
# programs. Never built with sanitizers, which do not know the stacks of its threads.
function(reprise_twins target source)
  cmake_parse_arguments(ARG "" "OUTPUT" "" ${ARGN})
  add_library(${target} MODULE "${source}")
  target_compile_options(${target} PRIVATE -include "${REPRISE_TWINS_FOLDER}/cuda_host.h" -Wall -Wextra -Werror -O3
    -fno-semantic-interposition -fno-extern-tls-init -ffp-contract=fast -fno-math-errno -fno-trapping-math
    -fno-stack-protector)
  if(REPRISE_TWIN_PROCESSOR)
    target_compile_options(${target} PRIVATE -march=${REPRISE_TWIN_PROCESSOR})
  endif()
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE reprise_twin_blocks reprise_cuda_headers)
  set_target_properties(${target} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
                        BUILD_RPATH_USE_ORIGIN ON)
  if(ARG_OUTPUT)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME "${ARG_OUTPUT}" SUFFIX "")
  endif()
endfunction()
set(REPRISE_TWINS_FOLDER "${CMAKE_CURRENT_SOURCE_DIR}/twins" CACHE INTERNAL "")
