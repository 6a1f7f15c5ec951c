// What is told of PyTorch's allocator. The launcher asks it for a backend that has the driver allocate each tensor
// (tools/launch/frameworks.def), and says so here by REPRISE_TORCH_BACKEND. A program may set its own in the script,
// where nobody sees it but by who calls the driver; and the backend lacks features that the program may want. Callers:
// the hooks that allocate; the handlers, at the program's end. Never fails loudly.
#pragma once

namespace reprise {

// Memory was asked for by a call that the backend never makes: is it PyTorch's own allocator that asks, which takes
// blocks and hides the tensors in them? Says so once.
void look_who_allocates() noexcept;

// The program is about to end with an error that Reprise has said nothing of: it may be what the backend lacks, where
// PyTorch is loaded and it was the launcher that has chosen.
void say_what_backend_lacks() noexcept;

}  // namespace reprise
