// A driver with just enough of streams, events and activity records for the tests of the activity sources. Its device
// time is a number that tests set (fake_driver_now), so times come out exactly.
#include <cuda.h>

#include <vector>

#include "preload/driver/sim_abi.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

struct FakeEvent {
  double time_ns = 0;
};

double device_now_ns = 0;
bool busy = false;
CUcontext current = nullptr;
CUstream capturing = nullptr;
unsigned records = 0;
std::vector<RepriseSimActivity> activities;
std::vector<uint64_t> pushed;
bool activity_enabled = false;

FakeEvent* fake(CUevent event) { return reinterpret_cast<FakeEvent*>(event); }

}  // namespace

// Each device has a name of its own; its last byte is the device's number.
EXPORTED CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(i);
  uuid->bytes[3] = static_cast<char>(0xff);
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

EXPORTED void fake_driver_now(double ns) { device_now_ns = ns; }
EXPORTED void fake_driver_busy(bool value) { busy = value; }
EXPORTED void fake_driver_context(CUcontext context) { current = context; }
EXPORTED void fake_driver_capture(CUstream stream) { capturing = stream; }
EXPORTED unsigned fake_driver_records() { return records; }
EXPORTED void fake_driver_ran(uint64_t start_ns, uint64_t end_ns) {
  if (activity_enabled) activities.push_back({pushed.empty() ? 0 : pushed.back(), start_ns, end_ns, 0, 0});
}

EXPORTED CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
EXPORTED CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuCtxPushCurrent(CUcontext) { return CUDA_SUCCESS; }
EXPORTED CUresult cuCtxPopCurrent(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) { return CUDA_SUCCESS; }
EXPORTED CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = reinterpret_cast<CUstream>(0x500);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status = stream == capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(new FakeEvent);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventDestroy(CUevent event) {
  delete fake(event);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventRecord(CUevent event, CUstream) {
  fake(event)->time_ns = device_now_ns;
  ++records;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventQuery(CUevent) { return busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS; }
EXPORTED CUresult cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }
EXPORTED CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  *milliseconds = static_cast<float>((fake(end)->time_ns - fake(start)->time_ns) / 1e6);
  return CUDA_SUCCESS;
}

EXPORTED void repriseSimActivityEnable(int enabled) { activity_enabled = enabled != 0; }
EXPORTED void repriseSimActivityPush(uint64_t id) { pushed.push_back(id); }
EXPORTED void repriseSimActivityPop() { pushed.pop_back(); }
EXPORTED unsigned repriseSimActivityRead(RepriseSimActivity* to, unsigned capacity) {
  unsigned count = 0;
  while (count < capacity && !activities.empty()) {
    to[count++] = activities.front();
    activities.erase(activities.begin());
  }
  return count;
}
