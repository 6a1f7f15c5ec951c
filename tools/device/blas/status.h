// Names and texts of cuBLAS's statuses, which both libraries tell. Callers: handle.cpp, lt/objects.cpp.
#pragma once
#include <cublas_v2.h>

namespace reprise::sim::blas {

const char* status_name(cublasStatus_t status);
const char* status_text(cublasStatus_t status);
// Of the version that the headers have.
cublasStatus_t library_property(libraryPropertyType type, int* value);

}  // namespace reprise::sim::blas
