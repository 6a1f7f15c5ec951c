// Kernels of many habits, with the truth of each: which parameter words (offsets) are pointers that it reads through
// and writes through, whether it follows pointers that lie in memory (hidden), and whether it gives the same bytes
// again (pure: as long as what it reads is the same before both launches). Read by check.py. `live`: the words that are
// pointers at a launch; `null`: those that are 0; `at`: bytes of the parameters at an offset; `grid`: blocks.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <cstdint>
#include <cstdio>
#define K extern "C" __global__ void
#define I int i = blockIdx.x * blockDim.x + threadIdx.x
// TRUTH elementwise live=0,8,16 read=0,8 write=16 hidden=0 pure=1
K elementwise(const float* a, const float* b, float* c, int n) {
  I;
  if (i < n) c[i] = a[i] + b[i];
}
// TRUTH inplace live=0 read=0 write=0 hidden=0 pure=0
K inplace(float* a, int n) {
  I;
  if (i < n) a[i] *= 2;
}
// TRUTH vectorized live=0,8 read=0 write=8 hidden=0 pure=1
K vectorized(const float4* a, float4* b, int n) {
  I;
  if (i < n) {
    float4 v = a[i];
    v.x += 1;
    v.w *= 3;
    b[i] = v;
  }
}
// TRUTH strided64 live=0,8 read=0 write=8 hidden=0 pure=1
K strided64(const double* a, double* b, int64_t n, int64_t s, int64_t t) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) b[i * t] = a[i * s];
}
// TRUTH byteoffset live=0,8 read=0 write=8 hidden=0 pure=1
K byteoffset(const char* a, char* b, int64_t from, int64_t to) { b[to + threadIdx.x] = a[from + threadIdx.x]; }
// TRUTH gather32 live=0,8,16 read=0,8 write=16 hidden=0 pure=1
K gather32(const int* index, const float* a, float* b, int n) {
  I;
  if (i < n) b[i] = a[index[i]];
}
// TRUTH gather64 live=0,8,16 read=0,8 write=16 hidden=0 pure=1
K gather64(const int64_t* index, const float* a, float* b, int n) {
  I;
  if (i < n) b[i] = a[index[i]];
}
// TRUTH gatherbytes live=0,8,16 read=0,8 write=16 hidden=0 pure=1
K gatherbytes(const int64_t* index, const char* a, char* b, int n) {
  I;
  if (i < n) b[i] = a[index[i]];
}
// TRUTH scatter live=0,8,16 read=0,8 write=16 hidden=0 pure=0
K scatter(const int64_t* index, const float* a, float* b, int n) {
  I;
  if (i < n) b[index[i]] = a[i];
}
// TRUTH table live=0,8 read=0 write=8 hidden=1 pure=0
K table(float** t, float* o) { o[threadIdx.x] = t[blockIdx.x][threadIdx.x]; }
// TRUTH tablewrite live=0,8 read=0,8 write= hidden=1 pure=0
K tablewrite(float** t, const float* o) { t[blockIdx.x][threadIdx.x] = o[threadIdx.x]; }
struct Node {
  Node* next;
  float value;
};
// TRUTH list live=0,8 read=0 write=8 hidden=1 pure=0
K list(const Node* n, float* o) {
  float s = 0;
  for (; n; n = n->next) s += n->value;
  *o = s;
}
// TRUTH handleparameter live=8 read= write=8 hidden=1 pure=0
K handleparameter(uint64_t h, float* o) { o[threadIdx.x] = *(const float*)((h << 9) + threadIdx.x * 4); }
// TRUTH encoded live=0,16 read=0 write=16 hidden=1 pure=0
K encoded(const uint64_t* t, uint64_t key, float* o) {
  o[threadIdx.x] = ((const float*)(t[blockIdx.x] ^ key))[threadIdx.x];
}
// TRUTH handle live=0,8 read=0 write=8 hidden=1 pure=0
K handle(const uint32_t* t, float* o) {
  o[threadIdx.x] = *(const float*)((uint64_t(t[blockIdx.x]) << 9) + threadIdx.x * 4);
}
// TRUTH handlebase live=0,16 read=0 write=16 hidden=1 pure=0
K handlebase(const uint64_t* t, uint64_t heap, float* o) {
  o[threadIdx.x] = *(const float*)(t[blockIdx.x] * 64 + heap);
}
// TRUTH addedoffset live=0,16 read=0 write=16 hidden=1 pure=0
K addedoffset(const uint64_t* t, uint64_t plus, float* o) {
  o[threadIdx.x] = ((const float*)(t[blockIdx.x] + plus))[threadIdx.x];
}
// TRUTH halves live=0,8 read=0 write=8 hidden=1 pure=0
K halves(const uint32_t* t, float* o) {
  o[threadIdx.x] = *(const float*)(uint64_t(t[2 * blockIdx.x + 1]) << 32 | t[2 * blockIdx.x]);
}
// TRUTH bytepieces live=0,8 read=0 write=8 hidden=1 pure=0
K bytepieces(const uint16_t* t, float* o) {
  uint64_t p = 0;
  for (int k = 3; k >= 0; --k) p = p << 16 | t[k];
  o[threadIdx.x] = *(const float*)p;
}
// TRUTH floatpointer live=0,8 read=0 write=8 hidden=1 pure=0
K floatpointer(const double* t, float* o) { o[threadIdx.x] = *(const float*)(uint64_t)(t[blockIdx.x] * 256.0); }
// TRUTH differences live=0,8,16 read=0,8 write=16 hidden=1 pure=0
K differences(const float* a, float* const* t, float* o, int n) {
  float s = 0;
  for (int k = 0; k < 4; ++k) {
    const float* q = t[k];
    for (int i = threadIdx.x; i < n; i += 32) s += a[i] * q[i];
  }
  o[threadIdx.x] = s;
}
// TRUTH minusbase live=0,8,16 read=0 write=16 hidden=1 pure=0
K minusbase(char* const* t, const char* a, char* o, int n) {
  int64_t apart = t[blockIdx.x] - a;
  for (int i = threadIdx.x; i < n; i += 32) o[i] = (a + i)[apart];
}
// TRUTH choose live=0,8,16 read=0,8 write=16 hidden=0 pure=1
K choose(const float* a, const float* b, float* o, int which) {
  const float* p = which ? a : b;
  o[threadIdx.x] = p[threadIdx.x];
}
// TRUTH swapping live=0,8,16 read=0,8 write=8 hidden=0 pure=0
K swapping(const float* a, float* b, float* o, int n) {
  float* p = b;
  const float* q = a;
  for (int k = 0; k < n; ++k) {
    p[threadIdx.x] = q[threadIdx.x ^ 1] + k;
    q = p;
    p = b;
  }
}
// TRUTH pingpong live=0,8 read=0,8 write=0,8 hidden=0 pure=0
K pingpong(float* a, float* b, int n) {
  float *p = a, *q = b;
  for (int k = 0; k < n; ++k) {
    q[threadIdx.x] = p[threadIdx.x] + 1;
    float* t = p;
    p = q;
    q = t;
    __syncthreads();
  }
}
// TRUTH optional live=0,16 read=0 write=16 hidden=0 pure=1 null=8
K optional(const float* a, const float* mask, float* o) {
  float v = a[threadIdx.x];
  if (mask) v *= mask[threadIdx.x];
  o[threadIdx.x] = v;
}
// TRUTH optionalindex live=0,8,24 read=0,8 write=24 hidden=0 pure=1 null=16
K optionalindex(const float* a, const int64_t* index, const float* mask, float* o) {
  int64_t k = index ? index[threadIdx.x] : threadIdx.x;
  float v = a[k];
  if (mask) v *= mask[k];
  o[threadIdx.x] = v;
}
// TRUTH conditional live=0,8 read=0 write=8 hidden=0 pure=1
K conditional(const float* a, float* o) {
  float v = a[threadIdx.x];
  if (v > 0) o[threadIdx.x] = v;
}
// TRUTH partial live=0,8 read=0 write=8 hidden=0 pure=1
K partial(const float* a, float* o) {
  if (threadIdx.x % 3 == 0) o[threadIdx.x * 2] = a[threadIdx.x];
}
// TRUTH atomics live=0,8 read=0,8 write=8 hidden=0 pure=0
K atomics(const float* a, float* s) { atomicAdd(s, a[threadIdx.x]); }
// TRUTH atomicreturn live=0,8 read=0,8 write=0,8 hidden=0 pure=0
K atomicreturn(int* n, float* o) {
  int k = atomicAdd(n, 1);
  o[k] = float(o[k + 1]);
}
// TRUTH atomiccas live=0,8 read=0,8 write=0 hidden=0 pure=0
K atomiccas(unsigned long long* a, const int* b) {
  atomicCAS(a + b[threadIdx.x], 1ull, 2ull);
  atomicMax((int*)a, 3);
  atomicExch((float*)a + 1, 2.f);
}
// TRUTH atomichalf live=0 read=0 write=0 hidden=0 pure=0
K atomichalf(double* a) {
  atomicAdd(a + threadIdx.x / 2, 1.0);
  atomicAdd_block((float*)a, 1.f);
}
// TRUTH reduction live=0,8 read=0 write=8 hidden=0 pure=1
K reduction(const float* a, float* o, int n) {
  __shared__ float s[256];
  float v = 0;
  for (int i = threadIdx.x; i < n; i += 256) v += a[i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int d = 128; d; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (!threadIdx.x) o[blockIdx.x] = s[0];
}
// TRUTH warpsum live=0,8 read=0 write=8 hidden=0 pure=1
K warpsum(const float* a, float* o) {
  float v = a[threadIdx.x];
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  if (!(threadIdx.x & 31)) o[threadIdx.x / 32] = v;
}
// TRUTH shufflepointer live=0,8,16 read=0,8 write=16 hidden=0 pure=1
K shufflepointer(const float* a, const float* b, float* o) {
  uint64_t p = threadIdx.x & 1 ? (uint64_t)a : (uint64_t)b;
  p = __shfl_xor_sync(~0u, p, 1);
  o[threadIdx.x] = ((const float*)p)[threadIdx.x];
}
// TRUTH histogram live=0,8 read=0 write=8 hidden=0 pure=1
K histogram(const uint8_t* a, int* o, int n) {
  __shared__ int h[256];
  h[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 256) atomicAdd(&h[a[i]], 1);
  __syncthreads();
  o[blockIdx.x * 256 + threadIdx.x] = h[threadIdx.x];
}
// TRUTH sharedfloats live=0,8 read=0 write=8 hidden=0 pure=0
K sharedfloats(const float* a, float* o) {
  __shared__ float s;
  if (!threadIdx.x) s = 0;
  __syncthreads();
  atomicAdd(&s, a[threadIdx.x]);
  __syncthreads();
  *o = s;
}
// TRUTH sharedslots live=0,8 read=0 write=8 hidden=0 pure=0
K sharedslots(const float* a, float* o) {
  __shared__ int s;
  if (!threadIdx.x) s = 0;
  __syncthreads();
  if (a[threadIdx.x] > 0) o[atomicAdd(&s, 1)] = a[threadIdx.x];
}
// TRUTH sharedpointers live=0,8,16 read=0,8 write=16 hidden=0 pure=1
K sharedpointers(const float* a, const float* b, float* o) {
  __shared__ const float* s[2];
  if (!threadIdx.x) {
    s[0] = a;
    s[1] = b;
  }
  __syncthreads();
  o[threadIdx.x] = s[threadIdx.x & 1][threadIdx.x];
}
// TRUTH sharedtable live=0,8 read=0 write=8 hidden=1 pure=0
K sharedtable(float* const* t, float* o) {
  __shared__ float* s[32];
  if (threadIdx.x < 32) s[threadIdx.x] = t[threadIdx.x];
  __syncthreads();
  o[threadIdx.x] = s[threadIdx.x & 31][threadIdx.x];
}
// TRUTH localpointers live=0,8,16,24 read=0,8,16 write=24 hidden=0 pure=1
K localpointers(const float* a, const float* b, const float* c, float* o, const int k) {
  const float* p[3] = {a, b, c};
  float s = 0;
  for (int i = 0; i < k; ++i) s += p[(i * 7 + threadIdx.x) % 3][i];
  o[threadIdx.x] = s;
}
// TRUTH localtable live=0,8 read=0 write=8 hidden=1 pure=0
K localtable(float* const* t, float* o, int k) {
  float* p[4];
  for (int i = 0; i < 4; ++i) p[(i * k) & 3] = t[i];
  o[threadIdx.x] = p[threadIdx.x & 3][threadIdx.x];
}
struct Three {
  char* data[3];
  int n;
};
// TRUTH structure live=0,8,16 read=8,16 write=0 hidden=0 pure=1
K structure(Three s) {
  I;
  if (i < s.n) *(float*)(s.data[0] + i * 4) = *(float*)(s.data[1] + i * 4) + *(float*)(s.data[2] + i * 4);
}
struct List {
  float* p[2][8];
  int n[8];
  uint8_t of[32];
};
// TRUTH apply live=0,8,16,64,72,80 read=0,8,16 write=64,72,80 hidden=0 pure=1 at=160:000102 grid=3
K apply(List l, float f) {
  int t = l.of[blockIdx.x];
  const float* a = l.p[0][t];
  float* b = l.p[1][t];
  for (int i = threadIdx.x; i < l.n[t]; i += blockDim.x) b[i] = a[i] * f;
}
// TRUTH applygrid live=0,8,16,64,72,80 read=0,8 write=64,72 hidden=0 pure=1 at=160:0001 grid=2
K applygrid(const __grid_constant__ List l, float f) {
  int t = l.of[blockIdx.x];
  const float* a = l.p[0][t];
  float* b = l.p[1][t];
  for (int i = threadIdx.x; i < l.n[t]; i += blockDim.x) b[i] = a[i] * f;
}
// TRUTH applyminus live=0,8,16,64,72,80 read=8 write=72 hidden=0 pure=1 at=192:02000000
K applyminus(const __grid_constant__ List l, int t) { l.p[1][t - 1][threadIdx.x] = l.p[0][t - 1][threadIdx.x] + 1; }
struct Holder {
  const List* list;
  float* o;
};
// TRUTH holder live=0,8 read=0 write=8 hidden=1 pure=0
K holder(Holder h) { h.o[threadIdx.x] = h.list->p[0][blockIdx.x][threadIdx.x]; }
__device__ float variable[64];
__device__ float* pointer_variable;
__constant__ float* pointer_constant;
__constant__ int numbers[64];
// TRUTH variables live=0 read= write=0 hidden=0 pure=0
K variables(float* o) { o[threadIdx.x] = variable[threadIdx.x]++; }
// TRUTH variabletable live=0 read= write=0 hidden=1 pure=0
K variabletable(float* o) { o[threadIdx.x] = pointer_variable[threadIdx.x]; }
// TRUTH constanttable live=0 read= write=0 hidden=1 pure=0
K constanttable(float* o) { o[threadIdx.x] = pointer_constant[threadIdx.x]; }
// TRUTH constants live=0,8 read=8 write=0 hidden=0 pure=1
K constants(float* o, const float* a) { o[threadIdx.x] = a[numbers[threadIdx.x & 63]]; }
typedef float (*Function)(const float*, int);
__device__ float once(const float* a, int i) { return a[i]; }
__device__ float twice(const float* a, int i) { return ((float* const*)a)[i][2]; }
__device__ Function functions[2] = {once, twice};
// TRUTH indirect live=0,8 read=0 write=8 hidden=1 pure=0
K indirect(const float* a, float* o, int k) { o[threadIdx.x] = functions[k](a, threadIdx.x); }
// TRUTH parameterfunction live=8,16 read=8 write=16 hidden=1 pure=0
K parameterfunction(Function f, const float* a, float* o) { o[threadIdx.x] = f(a, threadIdx.x); }
__device__ __noinline__ float helper(const float* a, int i) { return a[i] * 2; }
__device__ __noinline__ void storer(float* a, int i, float v) { a[i] = v; }
// TRUTH calls live=0,8,16 read=0,8 write=16 hidden=0 pure=1
K calls(const float* a, const float* b, float* o) {
  storer(o, threadIdx.x, helper(a, threadIdx.x) + helper(b, threadIdx.x));
}
__device__ __noinline__ float follow(float* const* t, int i) { return t[i][i]; }
// TRUTH callfollow live=0,8 read=0 write=8 hidden=1 pure=0
K callfollow(float* const* t, float* o) { o[threadIdx.x] = follow(t, threadIdx.x); }
__device__ __noinline__ float deep(const Node* n, int d) { return d == 0 || !n ? 0 : n->value + deep(n->next, d - 1); }
// TRUTH recursion live=0,8 read=0 write=8 hidden=1 pure=0
K recursion(const Node* n, float* o, int d) { *o = deep(n, d); }
// TRUTH division live=0,8 read=0 write=8 hidden=0 pure=1
K division(const float* a, float* o, int64_t n, int64_t m) {
  int64_t k = (threadIdx.x + n) / m, r = (threadIdx.x * n) % (m + 1);
  o[k] = a[r] / (a[k] + 1.5f) + sqrtf(a[r + 1]);
}
// TRUTH clocks live=0 read= write=0 hidden=0 pure=0
K clocks(long long* o) { o[threadIdx.x] = clock64(); }
// TRUTH timer live=0 read= write=0 hidden=0 pure=0
K timer(unsigned long long* o) {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  *o = t;
}
// TRUTH multiprocessor live=0 read= write=0 hidden=0 pure=0
K multiprocessor(unsigned* o) {
  unsigned s;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(s));
  o[blockIdx.x] = s;
}
// TRUTH active live=0,8 read=0 write=8 hidden=0 pure=0
K active(const float* a, unsigned* o) {
  if (a[threadIdx.x] > 0) o[threadIdx.x] = __activemask();
}
// TRUTH waiting live=0,8 read=0 write=8 hidden=0 pure=0
K waiting(volatile int* flag, int* o) {
  while (*flag == 0) {
  }
  o[0] = *flag;
}
// TRUTH semaphore live=0,8,16 read=0,8,16 write=0,16 hidden=0 pure=0
K semaphore(unsigned* n, const float* a, float* o) {
  __shared__ bool last;
  o[blockIdx.x] = a[blockIdx.x];
  __threadfence();
  last = atomicInc(n, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (last) {
    float s = 0;
    for (int i = 0; i < gridDim.x; ++i) s += o[i];
    o[0] = s;
  }
}
// TRUTH gridsync live=0,8 read=0,8 write=0,8 hidden=0 pure=0
K gridsync(float* a, float* b) {
  I;
  b[i] = a[i];
  cooperative_groups::this_grid().sync();
  a[i] = b[i + 1];
}
// TRUTH printing live=0,8 read=0 write=8 hidden=0 pure=0
K printing(const float* a, float* o) {
  if (a[0] < 0) printf("%f\n", a[0]);
  o[0] = a[1];
}
// TRUTH allocating live=0 read= write=0 hidden=0 pure=0
K allocating(float* o) {
  float* p = (float*)malloc(64);
  p[0] = o == nullptr;
  o[0] = p[0];
  float** h = (float**)malloc(8);
  *h = o;
  (*h)[2] = 1;
}
// TRUTH storing live=0,8 read= write=8 hidden=0 pure=1
K storing(float* a, float** t) { t[threadIdx.x] = a + threadIdx.x; }
// TRUTH storeandfollow live=0,8 read=8 write=0,8 hidden=1 pure=0
K storeandfollow(float* a, float** t) {
  t[threadIdx.x] = a + threadIdx.x;
  __syncthreads();
  t[threadIdx.x ^ 1][0] = 1;
}
// TRUTH asynccopy live=0,8 read=0 write=8 hidden=0 pure=1
K asynccopy(const float4* a, float4* o) {
  __shared__ float4 s[64];
  __pipeline_memcpy_async(&s[threadIdx.x], &a[threadIdx.x], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  o[threadIdx.x] = s[63 - threadIdx.x];
}
// TRUTH generic live=0,8 read=0,8 write=8 hidden=0 pure=0
K generic(const float* a, float* o, int k) {
  __shared__ float s[64];
  float l[8];
  for (int i = 0; i < 8; ++i) l[i * k & 7] = i;
  s[threadIdx.x] = a[threadIdx.x];
  float* p = k == 1 ? s : k == 2 ? l : o;
  p[k + threadIdx.x] += 1;
  __syncthreads();
  o[threadIdx.x] = s[threadIdx.x ^ 1] + l[k & 7];
}
// TRUTH align live=0,8 read=0 write=8 hidden=0 pure=1
K align(const float* a, float* o, int n) {
  int shift = ((uint64_t)a) % 16 / 4;
  const float* p = a - shift;
  float4 v = ((const float4*)p)[threadIdx.x];
  if (threadIdx.x >= shift) o[threadIdx.x] = v.x + v.y;
}
// TRUTH switching live=0,8,16 read=0,8 write=16 hidden=0 pure=1
K switching(const float* a, const float* b, float* o, int k) {
  float x = a[threadIdx.x];
  switch (k) {
    case 0:
      x = sinf(x);
      break;
    case 1:
      x = b[threadIdx.x];
      break;
    case 2:
      x = sqrtf(x);
      break;
    case 3:
      x = expf(x);
      break;
    case 4:
      x = logf(x);
      break;
    case 5:
      x = powf(x, x);
      break;
    case 6:
      x = b[7];
      break;
    case 7:
      x += 2;
      break;
    case 8:
      x = tanhf(x);
      break;
  }
  o[threadIdx.x] = x;
}
// TRUTH asserting live=0,8 read=0 write=8 hidden=0 pure=1
K asserting(const int* index, float* o, int n) {
  if (index[threadIdx.x] >= n) __assert_fail("index", "file", 1, "f");
  o[index[threadIdx.x] & 7 | threadIdx.x * 8] = 1;
}
// Numbers of a structure that holds addresses, too: one of them is added to an index from memory.
struct Lists {
  float* a[4];
  int n[8];
};
// TRUTH numbers_beside live=0,8,16,24,64,72 read=64 write=72 hidden=0 pure=0
K numbers_beside(Lists t, const int64_t* at, float* o) { o[at[threadIdx.x] + t.n[threadIdx.x & 7]] = 1; }
// A distance in 32 bits leads to the other object, where both lie within 4 GiB.
// TRUTH apart32 live=0,8,16 read=0,8 write=16 hidden=0 pure=1
K apart32(const float* p, const float* q, float* o) {
  const int d = (int)(q - p);
  o[threadIdx.x] = p[d + (int)threadIdx.x];
}
// Beyond what is proven: an offset from one object to another lies in memory.
// LIMIT relative live=0,8 read=0 write=8 hidden=1 pure=0
K relative(const int64_t* a, float* o) { o[threadIdx.x] = *(const float*)((const char*)a + a[threadIdx.x]); }
// TRUTH bulk live=0,8 read=0 write=8 hidden=0 pure=1
K bulk(const float* a, float* o) {
#if __CUDA_ARCH__ >= 900
  __shared__ alignas(128) float s[64];
  __shared__ uint64_t bar;
  unsigned d = (unsigned)__cvta_generic_to_shared(s), m = (unsigned)__cvta_generic_to_shared(&bar);
  if (!threadIdx.x) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(m));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(m));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(d),
                 "l"(a), "r"(m));
  }
  __syncthreads();
  asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra W;}" ::"r"(m));
  o[threadIdx.x] = s[threadIdx.x];
#else
  o[threadIdx.x] = a[threadIdx.x];
#endif
}
// TRUTH texture live=8 read= write=8 hidden=1 pure=0
K texture(cudaTextureObject_t t, float* o) { o[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }
struct alignas(4) Packed {
  unsigned lo, hi;
};
// TRUTH packed live=0,8 read=0 write=8 hidden=1 pure=0
K packed(const Packed* t, float* o) {
  Packed p = t[blockIdx.x];
  o[threadIdx.x] = ((const float*)((uint64_t)p.hi << 32 | p.lo))[threadIdx.x];
}
// TRUTH philox live=0,8 read=8 write=0 hidden=0 pure=1
K philox(float* o, uint64_t seed_or_pointer, bool captured) {
  uint64_t s = captured ? *(const uint64_t*)seed_or_pointer : seed_or_pointer;
  o[threadIdx.x] = float(s * 6364136223846793005ull + threadIdx.x);
}
// TRUTH localfixed live=0,8,16 read=0 write=8 hidden=1 pure=0
K localfixed(float* const* t, float* o, float* a, int k) {
  float* p[4] = {a, a, a, a};
  for (int i = 0; i < k; ++i) p[(i * k + threadIdx.x) & 3] = t[i];
  o[threadIdx.x] = p[2][threadIdx.x];
}
// TRUTH divided live=0,8,16 read=0 write=16 hidden=1 pure=0
K divided(float* const* t, float* a, float* o) {
  int64_t d = t[blockIdx.x] - a;
  asm("" : "+l"(d));
  o[threadIdx.x] = (a + d)[threadIdx.x];
}
// TRUTH twobases live=0,8,16,24 read=0 write=24 hidden=1 pure=0
K twobases(const int64_t* t, const char* a, uint64_t b, float* o) {
  o[threadIdx.x] = *(const float*)(a + (b / 3 * 3 + t[blockIdx.x]));
}
struct Entry {
  Entry* next;
  float value;
};
// TRUTH popped live=0,8 read=0 write=0,8 hidden=1 pure=0
K popped(unsigned long long* head, float* o) {
  Entry* e = (Entry*)atomicExch(head, 0ull);
  if (e) o[threadIdx.x] = e->value;
}
// TRUTH minimum live=0,8,16 read=0,8 write=16 hidden=0 pure=1
K minimum(const float* a, const float* b, float* o) {
  uint64_t p = min((uint64_t)a, (uint64_t)b);
  o[threadIdx.x] = *(const float*)p;
}
// TRUTH minimumtable live=0,8,16 read=0 write=16 hidden=1 pure=0
K minimumtable(const uint64_t* t, const float* a, float* o) {
  uint64_t p = max((uint64_t)a, t[blockIdx.x]);
  o[threadIdx.x] = *(const float*)p;
}
