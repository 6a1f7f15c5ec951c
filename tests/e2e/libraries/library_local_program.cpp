// A program that is not linked with the library whose function it calls, and has loaded the library where none but its
// own handle leads: as the caller looks from which a function is reached that ends with the call.
#include <dlfcn.h>

#include <cstdio>

int main() {
  void* handle = nullptr;
  if (dlopen("liblibrary_with_memory.so", RTLD_NOW | RTLD_LOCAL) == nullptr) return 2;
  auto* const create = reinterpret_cast<int (*)(void**)>(dlsym(RTLD_DEFAULT, "cublasCreate_v2"));
  if (create == nullptr) {
    std::puts("no loaded library exports the function");
  } else {
    std::puts(create(&handle) == 3 ? "the library has answered" : "another function has answered");
  }
  return 0;
}
