// Rectangles and boxes as copy plans. Callers: the copy functions, graph memcpy nodes.
#pragma once
#include "tools/device/memory/copy.h"

namespace reprise::sim {

CUresult plan_box(Context& context, const CUDA_MEMCPY3D& box, CopyPlan* plan);
CUDA_MEMCPY3D box_of(const CUDA_MEMCPY2D& rectangle);
CUDA_MEMCPY3D box_of(const CUDA_MEMCPY3D_PEER& peer);

}  // namespace reprise::sim
