// One driver call with the runtime's own arguments: handles are the same in both interfaces, numbers have the same
// values, and structures the same layout, which is checked by their size. Callers: the entry points of this folder.
#pragma once
#include <bit>
#include <type_traits>

#include "tools/device/runtime/runtime.h"

namespace reprise::sim::runtime {

template <typename From, typename To>
constexpr bool same_layout() {
  if constexpr (std::is_pointer_v<From> && std::is_pointer_v<To>) {
    return same_layout<std::remove_cv_t<std::remove_pointer_t<From>>, std::remove_cv_t<std::remove_pointer_t<To>>>();
  } else if constexpr (std::is_void_v<From> || std::is_void_v<To> || std::is_same_v<From, To>) {
    return true;
  } else {
    return sizeof(From) == sizeof(To);
  }
}

template <typename To, typename From>
To as(From value) {
  if constexpr (std::is_convertible_v<From, To>) {
    return value;
  } else if constexpr (std::is_pointer_v<From> && std::is_pointer_v<To>) {
    static_assert(same_layout<From, To>());
    return reinterpret_cast<To>(const_cast<std::remove_cv_t<std::remove_pointer_t<From>>*>(value));
  } else if constexpr (std::is_pointer_v<From>) {
    static_assert(std::is_same_v<To, CUdeviceptr>);
    return address_of(value);
  } else if constexpr (std::is_enum_v<From> || std::is_enum_v<To>) {
    return static_cast<To>(value);
  } else {
    return std::bit_cast<To>(value);
  }
}

template <typename... Parameters, typename... Arguments>
cudaError_t forward(CUresult (*Driver::*function)(Parameters...), Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  return call(function, as<Parameters>(arguments)...);
}

}  // namespace reprise::sim::runtime
