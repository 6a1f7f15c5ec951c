// Error cases: streams and events.
#include "tools/device/tests/errors/error_table.h"

namespace reprise::sim_test {
namespace {
const CUstream kNoStream = reinterpret_cast<CUstream>(0x1230);
const CUevent kNoEvent = reinterpret_cast<CUevent>(0x1230);
}  // namespace

std::vector<ErrorCase> stream_cases() {
  static CUstream stream;
  static CUevent event;
  static float time;
  static unsigned flags;
  static CUstreamCaptureMode mode;
  return {
    CASE(cuStreamCreate, "unknown flags", CUDA_ERROR_INVALID_VALUE, &stream, 0x1000),
        CASE(cuStreamCreate, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, 0),
        CASE_DO(cuStreamCreate, "no current context", CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxSetCurrent)(nullptr);
                return CU(cuStreamCreate)(&stream, 0);),
        CASE(cuStreamCreateWithPriority, "unknown flags", CUDA_ERROR_INVALID_VALUE, &stream, 0x1000, 0),
        CASE_SIM(cuStreamDestroy, "no stream", CUDA_ERROR_INVALID_HANDLE, kNoStream),
        CASE_DO_SIM(cuStreamDestroy, "twice", CUDA_ERROR_INVALID_HANDLE, CU(cuStreamDestroy)(g.stream);
                    return CU(cuStreamDestroy)(g.stream);),
        CASE_SIM(cuStreamQuery, "no stream", CUDA_ERROR_INVALID_HANDLE, kNoStream),
        CASE_SIM(cuStreamSynchronize, "no stream", CUDA_ERROR_INVALID_HANDLE, kNoStream),
        CASE(cuStreamWaitEvent, "unknown flags", CUDA_ERROR_INVALID_VALUE, g.stream, g.event, 0x1000),
        CASE_SIM(cuStreamWaitEvent, "no event", CUDA_ERROR_INVALID_HANDLE, g.stream, kNoEvent, 0),
        CASE(cuStreamGetFlags, "no place for the answer", CUDA_ERROR_INVALID_VALUE, g.stream, nullptr),
        CASE(cuStreamGetPriority, "no place for the answer", CUDA_ERROR_INVALID_VALUE, g.stream, nullptr),
        CASE(cuStreamGetId, "no place for the answer", CUDA_ERROR_INVALID_VALUE, g.stream, nullptr),
        CASE_SIM(cuStreamGetFlags, "no stream", CUDA_ERROR_INVALID_HANDLE, kNoStream, &flags),
        CASE(cuLaunchHostFunc, "no function", CUDA_ERROR_INVALID_VALUE, g.stream, nullptr, nullptr),
        CASE(cuStreamAddCallback, "no function", CUDA_ERROR_INVALID_VALUE, g.stream, nullptr, nullptr, 0),
        CASE_DO(cuStreamAddCallback, "flags that are not zero", CUDA_ERROR_INVALID_VALUE,
                return CU(cuStreamAddCallback)(
                    g.stream, [](CUstream, CUresult, void*) {}, nullptr, 1);),
        CASE(cuStreamWriteValue32, "an address that is not aligned", CUDA_ERROR_INVALID_VALUE, g.stream, g.memory + 1,
             0, 0),
        CASE(cuStreamWaitValue32, "unknown flags", CUDA_ERROR_INVALID_VALUE, g.stream, g.memory, 0, 0x1000),
        CASE(cuEventCreate, "unknown flags", CUDA_ERROR_INVALID_VALUE, &event, 0x1000),
        CASE(cuEventCreate, "between processes but with timing", CUDA_ERROR_INVALID_VALUE, &event,
             CU_EVENT_INTERPROCESS),
        CASE(cuEventCreate, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, 0),
        CASE_SIM(cuEventDestroy, "no event", CUDA_ERROR_INVALID_HANDLE, kNoEvent),
        CASE(cuEventDestroy, "the null event", CUDA_ERROR_INVALID_HANDLE, nullptr),
        CASE(cuEventRecord, "the null event", CUDA_ERROR_INVALID_HANDLE, nullptr, g.stream),
        CASE_SIM(cuEventRecord, "no stream", CUDA_ERROR_INVALID_HANDLE, g.event, kNoStream),
        CASE(cuEventRecordWithFlags, "unknown flags", CUDA_ERROR_INVALID_VALUE, g.event, g.stream, 0x1000),
        CASE(cuEventQuery, "the null event", CUDA_ERROR_INVALID_HANDLE, nullptr),
        CASE(cuEventSynchronize, "the null event", CUDA_ERROR_INVALID_HANDLE, nullptr),
        CASE(cuEventElapsedTime, "an event without a record", CUDA_ERROR_INVALID_HANDLE, &time, g.event, g.event),
        CASE_DO(cuEventRecord, "an event of another context", CUDA_ERROR_INVALID_HANDLE, CUcontext other = nullptr;
                CU(cuCtxCreate)(&other, nullptr, 0, g.device); CU(cuEventCreate)(&event, 0);
                CU(cuCtxSetCurrent)(g.context); const CUresult answer = CU(cuEventRecord)(event, g.stream);
                CU(cuCtxDestroy)(other); return answer;),
        CASE(cuStreamBeginCapture, "the legacy stream", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CU_STREAM_LEGACY,
             CU_STREAM_CAPTURE_MODE_GLOBAL),
        CASE(cuStreamBeginCapture, "no such mode", CUDA_ERROR_INVALID_VALUE, g.stream,
             static_cast<CUstreamCaptureMode>(99)),
        CASE_DO(cuStreamBeginCapture, "twice", CUDA_ERROR_ILLEGAL_STATE,
                CU(cuStreamBeginCapture)(g.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
                const CUresult answer = CU(cuStreamBeginCapture)(g.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
                CUgraph graph = nullptr; CU(cuStreamEndCapture)(g.stream, &graph); return answer;),
        CASE_DO(cuStreamEndCapture, "no capture", CUDA_ERROR_ILLEGAL_STATE, CUgraph graph = nullptr;
                return CU(cuStreamEndCapture)(g.stream, &graph);),
        CASE_DO_SIM(cuThreadExchangeStreamCaptureMode, "no such mode", CUDA_ERROR_INVALID_VALUE,
                    mode = static_cast<CUstreamCaptureMode>(99);
                    return CU(cuThreadExchangeStreamCaptureMode)(&mode);),
  };
}

}  // namespace reprise::sim_test
