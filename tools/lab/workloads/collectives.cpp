#include "tools/lab/workloads/collectives.h"

namespace reprise::tools::workloads {

Spread all_gather(Builder& builder, const Tensors& own) {
  Spread result(own.size());
  for (uint32_t piece = 0; piece < own.size(); ++piece) {
    for (uint32_t device = 0; device < own.size(); ++device) {
      result[device].push_back(builder.move(own[piece], device));
    }
  }
  return result;
}

Spread all_reduce(Builder& builder, const std::string& name, const Spread& partial) {
  if (partial.size() == 1) return partial;
  Tensors sums;
  for (uint32_t piece = 0; piece < partial.size(); ++piece) {
    Tensors addends;
    for (const Tensors& pieces : partial) addends.push_back(builder.move(pieces[piece], piece));
    builder.on(piece);
    sums.push_back(builder.make(name, addends, builder.bytes(addends.front())));
  }
  return all_gather(builder, sums);
}

}  // namespace reprise::tools::workloads
