# Finds the CUDA 13 toolkit (an installed one, else the one that tools/setup fetched into build/cuda) and offers rules
# that call nvcc. CMake's own CUDA language is not used: it insists on linking NVIDIA's runtime to test the compiler.

set(REPRISE_CUDA_ROOT "" CACHE PATH "CUDA 13 toolkit with CUPTI headers; empty: CUDA_HOME, /usr/local/cuda, build/cuda")
if(NOT REPRISE_CUDA_ROOT)
  foreach(candidate "$ENV{CUDA_HOME}" /usr/local/cuda "${PROJECT_SOURCE_DIR}/build/cuda")
    if(candidate AND EXISTS "${candidate}/bin/nvcc" AND EXISTS "${candidate}/include/cupti.h" AND
       EXISTS "${candidate}/include/cuda.h")
      file(STRINGS "${candidate}/include/cuda.h" version REGEX "^#define CUDA_VERSION 13")
      if(version)
        set(REPRISE_CUDA_ROOT "${candidate}" CACHE PATH "" FORCE)
        break()
      endif()
    endif()
  endforeach()
endif()
if(NOT REPRISE_CUDA_ROOT)
  message(FATAL_ERROR "no CUDA 13 toolkit with CUPTI headers found: run tools/setup, or set REPRISE_CUDA_ROOT")
endif()
set(REPRISE_CUDA_INCLUDE "${REPRISE_CUDA_ROOT}/include")
set(REPRISE_NVCC "${REPRISE_CUDA_ROOT}/bin/nvcc")
set(REPRISE_CUDA_ARCH "sm_90" CACHE STRING "Architecture of the cubins; PTX for it is embedded as well")
add_library(reprise_cuda_headers INTERFACE)
target_include_directories(reprise_cuda_headers SYSTEM INTERFACE "${REPRISE_CUDA_INCLUDE}")
message(STATUS "CUDA toolkit: ${REPRISE_CUDA_ROOT}")

# reprise_cubin(output.cubin source.cu [nvcc options...]): compiles device code alone. Output: an absolute path.
function(reprise_cubin output source)
  get_filename_component(source "${source}" ABSOLUTE)
  add_custom_command(OUTPUT "${output}"
    COMMAND "${REPRISE_NVCC}" -cubin -arch=${REPRISE_CUDA_ARCH} -O3 -std=c++17 -I "${PROJECT_SOURCE_DIR}" ${ARGN}
            -MD -MF "${output}.d" -o "${output}" "${source}"
    DEPENDS "${source}" DEPFILE "${output}.d" VERBATIM)
endfunction()

# reprise_cuda_program(name source.cu CUDART shared|static): an ordinary nvcc build of an ordinary program, into bin/.
function(reprise_cuda_program name source)
  cmake_parse_arguments(ARG "" "CUDART" "OPTIONS;DEPENDS" ${ARGN})
  get_filename_component(source "${source}" ABSOLUTE)
  set(output "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name}")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
    COMMAND "${REPRISE_NVCC}" -arch=${REPRISE_CUDA_ARCH} -O3 -std=c++17 -cudart ${ARG_CUDART} ${ARG_OPTIONS}
            -MD -MF "${output}.d" -o "${output}" "${source}"
    DEPENDS "${source}" ${ARG_DEPENDS} DEPFILE "${output}.d" VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${output}")
endfunction()
