# The kernel that computes digests: a cubin for the device that is built for, PTX for all others. Included by the top
# CMakeLists.txt, before the room's target is made.
string(REPLACE "sm_" "" digest_arch "${REPRISE_CUDA_ARCH}")
set(digest_fatbin "${CMAKE_BINARY_DIR}/digest.fatbin")
add_custom_command(OUTPUT "${digest_fatbin}"
  COMMAND "${REPRISE_NVCC}" -fatbin -O3 -std=c++17 -gencode arch=compute_75,code=compute_75
          -gencode "arch=compute_${digest_arch},code=[sm_${digest_arch},compute_${digest_arch}]"
          -o "${digest_fatbin}" "${CMAKE_CURRENT_LIST_DIR}/digest.cu"
  DEPENDS "${CMAKE_CURRENT_LIST_DIR}/digest.cu" VERBATIM)
set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/digest.S" PROPERTIES OBJECT_DEPENDS "${digest_fatbin}"
  COMPILE_DEFINITIONS "REPRISE_DIGEST_FATBIN=\"${digest_fatbin}\"")
