// A table at work: its memory, what it points to, and how its entries get there. Caller: program.cpp.
#pragma once
#include <vector>

#include "tests/e2e/hidden/device.h"

namespace hidden {

class TableAtWork {
 public:
  // `weights`: what kind Targets::shared points to.
  TableAtWork(Device* device, const Group& group, std::vector<Tensor>* weights, Tensor* counter, uint64_t seed);

  const Group& group() const { return group_; }
  uint32_t words() const;
  bool due(int iteration) const;
  // Does the iteration follow the pointers?
  bool followed(int iteration) const;
  bool transient() const { return group_.targets == Targets::transient; }

  void allocate_targets(int stream, Freeing freeing);
  void free_targets(Freeing freeing);
  void build(int stream, int iteration);
  void fill(int stream, uint32_t salt);
  // Every stream that follows the pointers waits for the last work on all it gets to.
  void use(int stream);
  Table table() const;
  When when() const;
  When always() const;
  // Its own tensors, to be read.
  std::vector<Tensor*> targets();

 private:
  std::vector<uint64_t> pointers(int iteration) const;
  size_t image_bytes(const Table& table) const;
  void make_memory(int stream);
  void write(const Table& table, Tensor* memory, const std::vector<uint64_t>& pointers, int stream);
  void write_host(const Table& table, const std::vector<uint64_t>& pointers, int stream);
  void write_image(Tensor* memory, CUdeviceptr to, int stream);
  void write_words(CUdeviceptr to, int stream, bool by_memset);
  void write_by_kernels(const Table& table, Tensor* memory, const std::vector<uint64_t>& pointers, int stream);
  bool on_host() const { return group_.place == Place::pinned || group_.place == Place::managed; }

  Device* device_;
  Group group_;
  std::vector<Tensor>* weights_;
  Tensor* counter_;
  uint64_t seed_;
  std::vector<Tensor> own_;  // targets, or the one that they are parts of
  Tensor memory_;            // the table's; without an address of its own where it lies on the host
  Tensor inner_;             // the plain table that an indirect one names
  Tensor staging_;
  unsigned char* host_table_ = nullptr;
  std::vector<unsigned char> image_;  // what is copied: stays as it is until the next build
  std::vector<unsigned char> rows_;   // ... in rows with gaps
  unsigned char* pinned_image_ = nullptr;
};

}  // namespace hidden
