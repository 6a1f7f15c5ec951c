// Stream memory operations: a stream writes a word, or waits until a word has a value.
#include <time.h>

#include "tools/device/base/trap.h"
#include "tools/device/engines/device.h"
#include "tools/device/memory/extents.h"
#include "tools/device/memory/memory.h"
#include "tools/device/streams/capture.h"
#include "tools/device/streams/dispatch.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

struct Word {
  uint64_t address;
  uint64_t value;
  bool wide;
};

uint64_t load(const Word& word) {
  if (word.wide) return __atomic_load_n(reinterpret_cast<const uint64_t*>(word.address), __ATOMIC_SEQ_CST);
  return __atomic_load_n(reinterpret_cast<const uint32_t*>(word.address), __ATOMIC_SEQ_CST);
}

void store(const Word& word) {
  if (word.wide) {
    __atomic_store_n(reinterpret_cast<uint64_t*>(word.address), word.value, __ATOMIC_SEQ_CST);
  } else {
    __atomic_store_n(reinterpret_cast<uint32_t*>(word.address), static_cast<uint32_t>(word.value), __ATOMIC_SEQ_CST);
  }
}

bool holds(const Word& word, unsigned condition) {
  const uint64_t now = load(word);
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == word.value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & word.value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
      return word.wide ? ~(now | word.value) != 0 : static_cast<uint32_t>(~(now | word.value)) != 0;
    default:  // greater or equal, cyclic
      return word.wide ? static_cast<int64_t>(now - word.value) >= 0
                       : static_cast<int32_t>(static_cast<uint32_t>(now) - static_cast<uint32_t>(word.value)) >= 0;
  }
}

class WriteOperation final : public Operation {
 public:
  explicit WriteOperation(const Word& word) : word_(word), place_(WrittenPlace::at(word.address)) {}
  OperationKind kind() const override { return OperationKind::other; }
  void execute(const Execution& execution) const override {
    auto body = [&] { store(word_); };
    if (!run_trapped(body)) execution.context.fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    place_.mark(word_.address, word_.wide ? 8 : 4);
  }

 private:
  const Word word_;
  const WrittenPlace place_;
};

class WaitOperation final : public Operation {
 public:
  WaitOperation(const Word& word, unsigned condition) : word_(word), condition_(condition) {}
  OperationKind kind() const override { return OperationKind::other; }
  void execute(const Execution& execution) const override {
    const HostWork time(execution.time_ns);
    auto body = [&] {
      while (!holds(word_, condition_)) {
        const timespec pause = {0, 20'000};
        nanosleep(&pause, nullptr);
      }
    };
    if (!run_trapped(body)) execution.context.fail(CUDA_ERROR_ILLEGAL_ADDRESS);
  }

 private:
  const Word word_;
  const unsigned condition_;
};

CUresult check(const Word& word) {
  const uint64_t bytes = word.wide ? 8 : 4;
  SIM_REQUIRE(word.address % bytes == 0, CUDA_ERROR_INVALID_VALUE);
  const MemoryMap::Place place = memory_map().place(word.address, bytes);
  return place.known && place.complete ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult submit(Context& context, CUstream handle, OperationPointer operation) {
  std::shared_ptr<Stream> stream;
  SIM_TRY(find_work_stream(context, handle, &stream));
  SIM_TRY(refuse_captured(*stream));
  return dispatch(context, handle, std::move(operation));
}

CUresult write(Context& context, CUstream stream, const Word& word, unsigned flags) {
  SIM_REQUIRE((flags & ~unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER}) == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(check(word));
  return submit(context, stream, std::make_shared<WriteOperation>(word));
}

CUresult wait(Context& context, CUstream stream, const Word& word, unsigned flags) {
  const unsigned condition = flags & ~unsigned{CU_STREAM_WAIT_VALUE_FLUSH};
  SIM_REQUIRE(condition <= CU_STREAM_WAIT_VALUE_NOR, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(check(word));
  return submit(context, stream, std::make_shared<WaitOperation>(word, condition));
}

CUresult one_of_batch(Context& context, CUstream stream, const CUstreamBatchMemOpParams& item) {
  switch (item.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return wait(context, stream, {item.waitValue.address, item.waitValue.value, false}, item.waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return wait(context, stream, {item.waitValue.address, item.waitValue.value64, true}, item.waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return write(context, stream, {item.writeValue.address, item.writeValue.value, false}, item.writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return write(context, stream, {item.writeValue.address, item.writeValue.value64, true}, item.writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

extern "C" {

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  return write(*context, stream, {addr, value, false}, flags);
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  return write(*context, stream, {addr, value, true}, flags);
}
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  return wait(*context, stream, {addr, value, false}, flags);
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  return wait(*context, stream, {addr, value, true}, flags);
}
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* paramArray,
                               unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(count <= 256 && (count == 0 || paramArray != nullptr) && flags == 0, CUDA_ERROR_INVALID_VALUE);
  for (unsigned i = 0; i < count; ++i) SIM_TRY(one_of_batch(*context, stream, paramArray[i]));
  return CUDA_SUCCESS;
}

}  // extern "C"
