// Launches: parameters copied by the driver's layout, pointers found wherever they stand, and the same launch issued
// later.
#include <cuda.h>

#include "preload/access/arguments.h"
#include "preload/access/launch_payload.h"
#include "preload/tracking/allocations.h"
#include "tests/support/test.h"
#include "tests/unit/preload/scripted/recording_handler.h"
#include "tests/unit/preload/scripted/scripted.h"

namespace reprise {
namespace {

uint64_t next_handle = 0x9000;  // each test launches a kernel of its own

// Modules without and with a variable that kernels can write.
constexpr const char* kPlain = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() { ret; }\n";
constexpr const char* kCounting =
    ".version 9.0\n.target sm_90\n.address_size 64\n.global .align 4 .u32 counter;\n.entry k() { ret; }\n";

class Launch : public testing::Test {
 protected:
  void SetUp() override {
    scripted().reset();
    watch(kWatching);
    ASSERT_EQ(cuMemAlloc(&a_, 4096), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&b_, 4096), CUDA_SUCCESS);
    a_id_ = handler().allocations[0].allocation;
    b_id_ = handler().allocations[1].allocation;
    kernel_ = reinterpret_cast<CUfunction>(next_handle += 0x100);
    ASSERT_EQ(cuModuleLoadData(&module_, kPlain), CUDA_SUCCESS);
  }
  void TearDown() override {
    cuModuleUnload(module_);
    cuMemFree(a_);
    cuMemFree(b_);
    stop_watching();
  }
  void layout(std::initializer_list<ScriptedParameter> parameters) {
    scripted().layout(parameters.begin(), static_cast<int>(parameters.size()));
  }
  CUresult launch(void** parameters, void** extra = nullptr) {
    return cuLaunchKernel(kernel_, 4, 2, 1, 128, 1, 1, 256, nullptr, parameters, extra);
  }
  const SeenCommand& last() { return handler().commands.back(); }

  CUdeviceptr a_ = 0;
  CUdeviceptr b_ = 0;
  uint64_t a_id_ = 0;
  uint64_t b_id_ = 0;
  CUfunction kernel_ = nullptr;
  CUmodule module_ = nullptr;  // the scripted driver has only this one
};

TEST_F(Launch, FindsPointersInParametersAndStructs) {
  struct Functor {
    int n;
    float scale;
    CUdeviceptr data[2];
  };
  layout({{0, 8}, {8, 4}, {16, sizeof(Functor)}});
  CUdeviceptr pointer = a_ + 40;
  int count = 5;
  Functor functor{1, 2.0f, {b_, b_ + 4096}};  // the second one is past the end
  void* parameters[] = {&pointer, &count, &functor};
  ASSERT_EQ(launch(parameters), CUDA_SUCCESS);
  const Command& command = last().command;
  EXPECT_EQ(command.op, trace::OpKind::launch);
  EXPECT_EQ(last().name, "a_kernel");
  EXPECT_EQ(command.flags & trace::kOpOpaque, 0);
  ASSERT_EQ(last().accesses.size(), 2u);
  EXPECT_EQ(last().accesses[0].allocation, a_id_);
  EXPECT_EQ(last().accesses[0].offset, 40u);
  EXPECT_EQ(last().accesses[0].parameter_offset, 0u);
  EXPECT_EQ(last().accesses[1].allocation, b_id_);
  EXPECT_EQ(last().accesses[1].parameter_offset, 24u);
  EXPECT_EQ(last().accesses[1].mode, trace::kAccessRead | trace::kAccessWrite);
  EXPECT_EQ(command.grid[0], 4u);
  EXPECT_EQ(command.block[0], 128u);
  EXPECT_EQ(command.shared_bytes, 256u);
}

TEST_F(Launch, IssuesFromACopyOfThePayloadWhileManaging) {
  watch(kWatching | kManaging);
  layout({{0, 8}, {8, 4}});
  CUdeviceptr pointer = a_;
  int count = 5;
  void* parameters[] = {&pointer, &count};
  handler().issue = false;
  launch(parameters);
  SeenCommand seen = last();
  pointer = 0xdead;  // the program's own copies are gone by then
  count = 99;
  alignas(16) static uint8_t elsewhere[4096];
  std::memcpy(elsewhere, seen.payload.data(), seen.payload.size());
  static CUdeviceptr issued_pointer;
  static int issued_count;
  scripted().reenter("cuLaunchKernel", [] {
    auto** list = reinterpret_cast<void**>(scripted().call("cuLaunchKernel").integers[9]);
    std::memcpy(&issued_pointer, list[0], 8);
    std::memcpy(&issued_count, list[1], 4);
  });
  EXPECT_EQ(seen.command.issue(elsewhere, CU_STREAM_LEGACY), CUDA_SUCCESS);
  EXPECT_EQ(issued_pointer, a_);
  EXPECT_EQ(issued_count, 5);
}

TEST_F(Launch, TheDriverGetsTheProgramsOwnArraysWhereNothingIsDeferred) {
  layout({{0, 8}, {8, 4}});
  CUdeviceptr pointer = a_;
  int count = 5;
  void* parameters[] = {&pointer, &count};
  static void* seen;
  scripted().reenter("cuLaunchKernel",
                     [] { seen = reinterpret_cast<void*>(scripted().call("cuLaunchKernel").integers[9]); });
  EXPECT_EQ(launch(parameters), CUDA_SUCCESS);
  EXPECT_EQ(seen, static_cast<void*>(parameters));
  ASSERT_EQ(last().parameters.size(), 12u) << "the recorder has them all the same";
  EXPECT_EQ(std::memcmp(last().parameters.data(), &pointer, sizeof pointer), 0);
  EXPECT_EQ(std::memcmp(last().parameters.data() + 8, &count, sizeof count), 0);
}

// One that is left out would be missing in every launch that is issued later.
TEST_F(Launch, AnEndOfTheLayoutIsBelievedTheSecondTime) {
  layout({{0, 8}, {8, 8}});
  scripted().deny_parameter(1);
  void* parameters[] = {&a_, &b_};
  launch(parameters);
  EXPECT_EQ(last().command.parameter_bytes, 16u);
  EXPECT_EQ(last().accesses.size(), 2u);
}

// As handles are that cuModuleEnumerateFunctions gave, with lazy loading.
TEST_F(Launch, AFunctionThatIsNotLoadedIsLoadedForItsLayout) {
  layout({{0, 8}, {8, 8}});
  scripted().unloaded();
  void* parameters[] = {&a_, &b_};
  launch(parameters);
  EXPECT_EQ(last().command.parameter_bytes, 16u);
  EXPECT_EQ(last().command.flags & trace::kOpOpaque, 0);
}

TEST_F(Launch, FirstParameterNeedNotStandAtZero) {
  layout({{112, 128}, {240, 8}});
  alignas(128) unsigned char descriptor[128] = {};
  CUdeviceptr pointer = b_;
  void* parameters[] = {descriptor, &pointer};
  launch(parameters);
  EXPECT_EQ(last().command.parameter_bytes, 248u);
  ASSERT_EQ(last().accesses.size(), 1u);
  EXPECT_EQ(last().accesses[0].parameter_offset, 240u);
}

TEST_F(Launch, ReadsTheBufferOfExtra) {
  layout({{0, 8}});
  struct {
    CUdeviceptr a;
    CUdeviceptr b;
  } buffer{a_, b_};
  size_t bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  launch(nullptr, extra);
  EXPECT_EQ(last().command.parameter_bytes, 16u);
  ASSERT_GE(last().accesses.size(), 1u);
  EXPECT_EQ(last().accesses[0].allocation, a_id_);
}

TEST_F(Launch, AnUnknownLayoutIsOpaqueAndIssuedAtOnce) {
  scripted().layout(nullptr, -1);
  CUdeviceptr pointer = a_;
  void* parameters[] = {&pointer};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(launch(parameters), CUDA_SUCCESS);
    EXPECT_NE(last().command.flags & trace::kOpOpaque, 0);
    EXPECT_TRUE(last().command.first_of_shape);
  }
  EXPECT_EQ(scripted().call("cuLaunchKernel").integers[9], reinterpret_cast<uint64_t>(parameters));
}

TEST_F(Launch, KernelsWithoutParametersNeedNone) {
  layout({});
  EXPECT_EQ(launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(last().command.flags & trace::kOpOpaque, 0);
  EXPECT_EQ(last().command.parameter_bytes, 0u);
}

TEST_F(Launch, AShapeIsFirstUntilItSucceeded) {
  layout({});
  handler().answer = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  EXPECT_EQ(launch(nullptr), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  handler().answer = CUDA_SUCCESS;
  launch(nullptr);
  EXPECT_TRUE(last().command.first_of_shape);
  launch(nullptr);
  EXPECT_FALSE(last().command.first_of_shape);
  cuLaunchKernel(kernel_, 5, 2, 1, 128, 1, 1, 256, nullptr, nullptr, nullptr);
  EXPECT_TRUE(last().command.first_of_shape);
}

// CUTLASS sets the 12 bytes of a cluster's size and leaves the other 52 as they were.
TEST_F(Launch, WhatAnAttributeDoesNotUseIsNoPartOfItsShape) {
  layout({});
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  CUlaunchAttribute attribute;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const auto first = [&](unsigned char left_over, CUlaunchAttributeID id, unsigned size) {
    std::memset(&attribute, left_over, sizeof attribute);
    attribute.id = id;
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      attribute.value.clusterDim = {size, 1, 1};
    } else {
      attribute.value.priority = static_cast<int>(size);
    }
    EXPECT_EQ(cuLaunchKernelEx(&config, kernel_, nullptr, nullptr), CUDA_SUCCESS);
    return last().command.first_of_shape;
  };
  EXPECT_TRUE(first(0x11, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 2));
  EXPECT_FALSE(first(0x22, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 2));
  EXPECT_TRUE(first(0x11, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4));
  EXPECT_TRUE(first(0x11, CU_LAUNCH_ATTRIBUTE_PRIORITY, 4));
  EXPECT_FALSE(first(0x22, CU_LAUNCH_ATTRIBUTE_PRIORITY, 4));
  EXPECT_TRUE(first(0x11, CU_LAUNCH_ATTRIBUTE_PRIORITY, 5));
  // What is not known counts as a whole.
  constexpr auto kUnknown = static_cast<CUlaunchAttributeID>(99);
  EXPECT_TRUE(first(0x11, kUnknown, 4));
  EXPECT_TRUE(first(0x22, kUnknown, 4));
  EXPECT_FALSE(first(0x22, kUnknown, 4));
}

TEST_F(Launch, AttributesAreCopiedAndDependentLaunchIsLeftOutWhileManaging) {
  layout({});
  CUlaunchAttribute attributes[2]{};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[0].value.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[1].value.clusterDim = {2, 1, 1};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.attrs = attributes;
  config.numAttrs = 2;
  static unsigned count;
  static CUlaunchAttributeID first;
  scripted().reenter("cuLaunchKernelEx", [] {
    const auto* seen = reinterpret_cast<const CUlaunchConfig*>(scripted().call("cuLaunchKernelEx").integers[0]);
    count = seen->numAttrs;
    first = seen->attrs[0].id;
  });
  EXPECT_EQ(cuLaunchKernelEx(&config, kernel_, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(count, 2u);
  watch(kWatching | kManaging);
  EXPECT_EQ(cuLaunchKernelEx(&config, kernel_, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(first, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
}

TEST_F(Launch, AttributesWithEventsAreOpaque) {
  layout({});
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
  CUlaunchConfig config{};
  config.attrs = &attribute;
  config.numAttrs = 1;
  cuLaunchKernelEx(&config, kernel_, nullptr, nullptr);
  EXPECT_NE(last().command.flags & trace::kOpOpaque, 0);
  EXPECT_EQ(handler().ordered.back(), "cuLaunchKernelEx");
}

TEST_F(Launch, TensorMapsLeadToTheirMemory) {
  alignas(64) CUtensorMap map{};
  cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, reinterpret_cast<void*>(b_ + 256), nullptr, nullptr,
                         nullptr, nullptr, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                         CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  layout({{0, 128}});
  // The scripted driver encodes from its fourth argument, the address.
  void* parameters[] = {&map};
  launch(parameters);
  ASSERT_EQ(last().accesses.size(), 1u);
  EXPECT_EQ(last().accesses[0].allocation, b_id_);
  EXPECT_EQ(last().accesses[0].offset, 256u);
}

TEST_F(Launch, PointerTablesLeadToTheirPointees) {
  CUdeviceptr table[4] = {0, b_ + 64, 123, b_ + 128};
  cuMemcpyHtoD(a_ + 8, table, sizeof table);
  layout({{0, 8}});
  void* parameters[] = {&a_};
  launch(parameters);
  ASSERT_EQ(last().accesses.size(), 2u);
  EXPECT_EQ(last().accesses[1].allocation, b_id_);
  EXPECT_EQ(last().accesses[1].parameter_offset, trace::kNoParameter);
  cuMemsetD32(a_ + 8, 0, 8);  // overwritten
  launch(parameters);
  EXPECT_EQ(last().accesses.size(), 1u);
}

TEST_F(Launch, ANewPointerTableReplacesTheOldOne) {
  CUdeviceptr c = 0;
  cuMemAlloc(&c, 4096);
  const uint64_t c_id = handler().allocations.back().allocation;
  CUdeviceptr table[2] = {b_, 0};
  cuMemcpyHtoD(a_, table, sizeof table);
  table[0] = c;
  cuMemcpyHtoD(a_, table, sizeof table);
  layout({{0, 8}});
  void* parameters[] = {&a_};
  launch(parameters);
  ASSERT_EQ(last().accesses.size(), 2u);
  EXPECT_EQ(last().accesses[1].allocation, c_id);
  cuMemFree(c);  // what the table points to is gone
  launch(parameters);
  EXPECT_EQ(last().accesses.size(), 1u);
}

TEST_F(Launch, PointerTablesMoveWithDeviceCopies) {
  CUdeviceptr c = 0;
  cuMemAlloc(&c, 4096);
  CUdeviceptr table[1] = {b_};
  cuMemcpyHtoD(a_, table, sizeof table);
  cuMemcpyDtoD(c + 512, a_, 64);
  layout({{0, 8}});
  void* parameters[] = {&c};
  launch(parameters);
  ASSERT_EQ(last().accesses.size(), 2u);
  EXPECT_EQ(last().accesses[1].allocation, b_id_);
  cuMemFree(c);
}

TEST_F(Launch, ModuleVariablesBelongToTheirKernels) {
  layout({});
  launch(nullptr);
  EXPECT_EQ(last().accesses.size(), 0u);
  CUdeviceptr address = 0;
  size_t bytes = 0;
  ASSERT_EQ(cuModuleGetGlobal(&address, &bytes, reinterpret_cast<CUmodule>(0xabc0), "table"), CUDA_SUCCESS);
  launch(nullptr);
  ASSERT_EQ(last().accesses.size(), 1u);
  EXPECT_EQ(last().accesses[0].address, address);
  cuModuleUnload(reinterpret_cast<CUmodule>(0xabc0));
  Allocation found;
  EXPECT_FALSE(find_allocation(address, &found));
}

// The address of this variable is never asked for, so any kernel of the module may use it.
TEST_F(Launch, VariablesThatNobodyAskedForAreOneResource) {
  layout({{0, 8}});
  void* parameters[] = {&a_};
  const auto variables = [&](CUfunction kernel) {
    kernel_ = kernel;
    launch(parameters);
    const std::vector<Access>& seen = last().accesses;
    EXPECT_EQ(seen.at(0).allocation, a_id_);
    return seen.size() < 2 ? Access{} : seen[1];
  };
  EXPECT_EQ(variables(kernel_).allocation, 0u);
  cuModuleUnload(module_);
  cuModuleLoadData(&module_, kCounting);
  const auto fresh = [] { return reinterpret_cast<CUfunction>(next_handle += 0x100); };
  const Access first = variables(fresh());
  EXPECT_NE(first.allocation, 0u);
  EXPECT_EQ(first.mode, trace::kAccessRead | trace::kAccessWrite);
  EXPECT_EQ(first.address - first.offset, 0u);  // no address: it must not be taken for managed memory
  EXPECT_EQ(variables(fresh()).allocation, first.allocation);
  cuModuleUnload(module_);
  const Access unseen = variables(fresh());  // of a module whose image no hook saw
  EXPECT_NE(unseen.allocation, 0u);
  EXPECT_NE(unseen.allocation, first.allocation);
}

// Lines on stdout come in the order of the launches, whatever module they come from.
TEST_F(Launch, AllThatPrintsIsOneResource) {
  layout({});
  const std::string printing =
      std::string(kPlain) + ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n";
  const auto output = [&] {
    cuModuleUnload(module_);
    cuModuleLoadData(&module_, printing.c_str());
    kernel_ = reinterpret_cast<CUfunction>(next_handle += 0x100);
    launch(nullptr);
    return last().accesses.empty() ? 0 : last().accesses[0].allocation;
  };
  const uint64_t first = output();
  EXPECT_NE(first, 0u);
  EXPECT_EQ(output(), first);
}

// Contexts that end take their modules with them, and no call says so.
TEST_F(Launch, HandlesMayComeBackWithoutAnUnload) {
  layout({});
  launch(nullptr);
  EXPECT_EQ(last().accesses.size(), 0u);
  cuModuleLoadData(&module_, kCounting);  // the same handle, and the same of its kernel, which is another one
  layout({{0, 8}});
  void* parameters[] = {&a_};
  launch(parameters);
  ASSERT_EQ(last().accesses.size(), 2u);
  EXPECT_EQ(last().accesses[0].allocation, a_id_);

  CUlibrary library = nullptr;
  cuLibraryLoadData(&library, kPlain, nullptr, nullptr, 0, nullptr, nullptr, 0);
  auto kernel = reinterpret_cast<CUkernel>(kernel_);
  cuLibraryEnumerateKernels(&kernel, 1, library);  // now the same handle is a library's
  launch(parameters);
  EXPECT_EQ(last().accesses.size(), 1u);
  cuLibraryUnload(library);
}

TEST_F(Launch, ALibraryAndItsModulesHaveTheSameVariables) {
  layout({});
  const auto variables = [&](CUfunction kernel) {
    kernel_ = kernel;
    launch(nullptr);
    return last().accesses.empty() ? 0 : last().accesses[0].allocation;
  };
  const auto all = [&](const char* image) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction of_kernel = nullptr;
    CUmodule module = nullptr;
    CUfunction of_module = nullptr;
    cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
    cuLibraryGetKernel(&kernel, library, "k");
    cuKernelGetFunction(&of_kernel, kernel);
    cuLibraryGetModule(&module, library);
    cuModuleGetFunction(&of_module, module, "k");
    const std::vector<uint64_t> seen = {variables(reinterpret_cast<CUfunction>(kernel)), variables(of_kernel),
                                        variables(of_module)};
    cuLibraryUnload(library);
    EXPECT_EQ(variables(of_kernel), 0u);           // the same handle, of another kernel: the driver tells the module
    cuModuleGetFunction(&of_module, module, "k");  // of another module, whose load no hook saw
    EXPECT_NE(variables(of_module), 0u);
    return seen;
  };
  EXPECT_EQ(all(kPlain), std::vector<uint64_t>(3, 0));
  const std::vector<uint64_t> counting = all(kCounting);
  EXPECT_NE(counting[0], 0u);
  EXPECT_EQ(counting, std::vector<uint64_t>(3, counting[0]));
  EXPECT_EQ(all(kPlain), std::vector<uint64_t>(3, 0));  // nothing is left of a library that went away
}

TEST_F(Launch, ImagesAreReadFromFilesToo) {
  layout({});
  const std::string path = testing::TempDir() + "launch_test." + std::to_string(getpid());
  const auto variables = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    cuModuleUnload(module_);
    EXPECT_EQ(cuModuleLoad(&module_, path.c_str()), CUDA_SUCCESS);
    kernel_ = reinterpret_cast<CUfunction>(next_handle += 0x100);
    launch(nullptr);
    return last().accesses.size();
  };
  EXPECT_EQ(variables(kPlain), 0u);
  EXPECT_EQ(variables(kCounting), 1u);
  EXPECT_EQ(variables("what is this"), 1u);
  std::remove(path.c_str());
}

TEST_F(Launch, TexturesOverPlainMemoryAreAlwaysTouched) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = a_ + 16;
  CUDA_TEXTURE_DESC texture{};
  CUtexObject object = 0;
  ASSERT_EQ(cuTexObjectCreate(&object, &resource, &texture, nullptr), CUDA_SUCCESS);
  layout({});
  launch(nullptr);
  ASSERT_EQ(last().accesses.size(), 1u);
  EXPECT_EQ(last().accesses[0].allocation, a_id_);
}

TEST_F(Launch, SettingAnAttributeToWhatItIsDoesNotDrain) {
  cuFuncSetAttribute(kernel_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536);
  cuFuncSetAttribute(kernel_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536);
  EXPECT_EQ(handler().ordered.size(), 1u);
  cuFuncSetAttribute(kernel_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 32768);
  EXPECT_EQ(handler().ordered.size(), 2u);
  EXPECT_EQ(scripted().call("cuFuncSetAttribute").count, 3u);
}

TEST(Arguments, AKernelThatIsOpaqueByNameIsAnOpaqueLaunch) {
  watch(kWatching);
  Function function;
  function.layout_known = true;
  for (const bool opaque : {false, true}) {
    function.opaque = opaque;
    CommandBuilder builder(trace::OpKind::launch, "k", CU_STREAM_LEGACY, nullptr, 0);
    scan_launch(builder, function, nullptr, 0, {1});
    EXPECT_EQ((builder.command.flags & trace::kOpOpaque) != 0, opaque);
  }
  stop_watching();
}

// A structure larger than what a launch may need room for: nothing is lost in silence.
TEST(Arguments, MorePointersThanRoomIsOpaque) {
  watch(kWatching);
  CUdeviceptr a = 0;
  ASSERT_EQ(cuMemAlloc(&a, 4096), CUDA_SUCCESS);
  Access room[2];
  CommandBuilder builder(trace::OpKind::launch, "k", CU_STREAM_LEGACY, room, 2);
  const uint64_t words[3] = {a, a + 8, a + 16};
  scan_words(builder, reinterpret_cast<const uint8_t*>(words), 0, sizeof words);
  EXPECT_EQ(builder.command.access_count, 2u);
  EXPECT_NE(builder.command.flags & trace::kOpOpaque, 0);
  cuMemFree(a);
  stop_watching();
}

// Of a known structure only the set part counts, unless it is not what it should be.
TEST(Arguments, OldAddressesInAKnownStructureAreNoAccesses) {
  watch(kWatching);
  CUdeviceptr a = 0;
  ASSERT_EQ(cuMemAlloc(&a, 4096), CUDA_SUCCESS);
  struct Lists {
    CUdeviceptr addresses[110];
    int64_t sizes[110];
    uint8_t tensor_of[320];
    int chunk_of[320];
    int start;
  } lists{};
  for (CUdeviceptr& address : lists.addresses) address = a;
  for (int64_t& size : lists.sizes) size = static_cast<int64_t>(a);
  lists.tensor_of[1] = 1;
  const trace::ParameterLayout layout = {0, sizeof lists};
  Function function;
  function.name = "multi_tensor_apply_kernelINS1_18TensorListMetadataILi1EEE";
  function.layout_known = true;
  function.parameter_count = 1;
  function.parameter_bytes = sizeof lists;
  function.parameters = &layout;
  function.structures = structures::recognize(function.name, &layout, 1);
  const auto accesses_of = [&] {
    static Access room[400];
    CommandBuilder builder(trace::OpKind::launch, "k", CU_STREAM_LEGACY, room, 400);
    scan_launch(builder, function, reinterpret_cast<const uint8_t*>(&lists), sizeof lists, {2});
    return builder.command.access_count;
  };
  EXPECT_EQ(accesses_of(), 2u);
  lists.tensor_of[1] = 7;
  EXPECT_EQ(accesses_of(), 220u);
  cuMemFree(a);
  stop_watching();
}

}  // namespace
}  // namespace reprise
