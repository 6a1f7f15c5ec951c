// Where the planner, which is another process, finds the bytes of a module image again: in the file that they were
// mapped from, else in a file of ours that lives in memory. Caller: the module hooks.
#pragma once
#include "preload/tracking/module_image.h"

namespace reprise {

// A line of the recording, `image.CODE = ARCHITECTURE OFFSET BYTES PATH`, once for each code. Nothing is told of PTX,
// of images that are linked from several, and where all of it would be too much to keep.
void record_image_place(const ImageTraits& traits, const void* image) noexcept;
void record_image_file(const ImageTraits& traits, const char* path) noexcept;

}  // namespace reprise
