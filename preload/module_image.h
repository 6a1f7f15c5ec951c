// Module images as the hooks on loads see them: may kernels pass each other data through a variable whose address the
// program never asks for? In doubt, and where memory is short: true.
#pragma once

namespace reprise {

// `image`: what cuModuleLoadData or cuLibraryLoadData just accepted.
bool may_hold_variables(const void* image) noexcept;
bool file_may_hold_variables(const char* path) noexcept;

}  // namespace reprise
