#include "tools/device/twins/registry.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/device/twins/executor.h"

namespace reprise::sim {
namespace {

struct Registry {
  std::once_flag loaded;
  std::vector<void*> libraries;
  std::unordered_map<std::string_view, const Twin*> twins;  // names live in the libraries
  const char* problem = nullptr;
};

// Never destroyed: kernels may run until the process ends.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

void load(Registry& to, const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    to.problem = (new std::string("cannot load the twins " + path + ": " + dlerror()))->c_str();
    return;
  }
  const auto list = reinterpret_cast<TwinList>(dlsym(library, kTwinListSymbol));
  if (list == nullptr) {
    to.problem = (new std::string(path + " is no twin library of this version"))->c_str();
    return;
  }
  to.libraries.push_back(library);
  for (const Twin* twin = list(); twin != nullptr; twin = twin->next) {
    Dl_info info;
    if (dladdr(twin->kernel, &info) != 0 && info.dli_sname != nullptr && info.dli_saddr == twin->kernel) {
      to.twins.emplace(info.dli_sname, twin);
    } else {
      to.problem = (new std::string(path + " has a kernel without a visible name"))->c_str();
    }
  }
}

void load_if_there(Registry& to, const std::string& path) {
  if (access(path.c_str(), R_OK) == 0) load(to, path);
}

// Twins of the kernels that the simulated device's own libraries launch, and of Reprise's own.
void load_own(Registry& to) {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&load_own), &info) == 0 || info.dli_fname == nullptr) return;
  const std::string driver = info.dli_fname;
  const std::string folder = driver.substr(0, driver.rfind('/') + 1);
  for (const char* name : {"blas.twins.so", "digest.twins.so"}) load_if_there(to, folder + name);
}

void load_all(Registry& to) {
  load_own(to);
  if (const char* listed = std::getenv("REPRISE_SIM_TWINS")) {
    std::string_view rest = listed;
    while (!rest.empty()) {
      const size_t end = rest.find(':');
      if (end != 0) load(to, std::string(rest.substr(0, end)));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  if (length <= 0 || length == static_cast<ssize_t>(sizeof program)) return;
  load_if_there(to, std::string(program, static_cast<size_t>(length)) + ".twins.so");
}

}  // namespace

void load_twins(const char** problem) {
  Registry& instance = registry();
  std::call_once(instance.loaded, [&] { load_all(instance); });
  if (problem != nullptr) *problem = instance.problem;
}

const Twin* find_twin(std::string_view kernel) {
  const auto& twins = registry().twins;
  const auto found = twins.find(kernel);
  return found == twins.end() ? nullptr : found->second;
}

void* find_twin_global(const char* name, size_t bytes) {
  for (void* library : registry().libraries) {
    void* address = dlsym(library, name);
    Dl_info info;
    void* symbol = nullptr;
    // dlsym also looks into what the library depends on: a variable of that name elsewhere is not a twin's.
    if (address == nullptr || dladdr1(address, &info, &symbol, RTLD_DL_SYMENT) == 0 || symbol == nullptr) continue;
    link_map* map = nullptr;
    if (dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 ||
        reinterpret_cast<void*>(map->l_addr) != info.dli_fbase) {
      continue;
    }
    const auto* entry = static_cast<const Elf64_Sym*>(symbol);
    if (info.dli_saddr == address && ELF64_ST_TYPE(entry->st_info) == STT_OBJECT && entry->st_size == bytes) {
      return address;
    }
  }
  return nullptr;
}

}  // namespace reprise::sim
