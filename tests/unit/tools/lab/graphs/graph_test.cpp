// Task graphs and machines from files: what the JSON means, and one clear line for what makes no sense.
#include <fmt/format.h>
#include <zstd.h>

#include "tests/support/test.h"
#include "tools/lab/graphs/json_graph.h"
#include "tools/lab/machines/machines.h"

namespace reprise::tools::test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// w is a weight, x lives from kernel 0 to 1, kernel 1 has a workspace and updates w.
constexpr char kTwoKernels[] = R"({
  "model": "two kernels", "batch": 1,
  "tensors": [{"id": 7, "bytes": 4194304, "persistent": 1}, {"id": 3, "bytes": 2097152, "persistent": 0},
              {"id": 9, "bytes": 4096}],
  "kernels": [{"id": 0, "name": "forward", "duration_ns": 1000, "inputs": [7], "outputs": [3]},
              {"id": 1, "name": "update", "duration_ns": 2000, "inputs": [3, 7], "outputs": [7],
               "workspace_bytes": 6291456}]})";

std::string why(const std::string& text) {
  const Result<analyzer::TaskGraph> graph = parse_graph(text, kGraphChunk);
  EXPECT_FALSE(graph.ok()) << text;
  return graph.status().message();
}

std::string with(const std::string& tensors, const std::string& kernels) {
  return R"({"tensors": [)" + tensors + R"(], "kernels": [)" + kernels + "]}";
}
constexpr char kTensor[] = R"({"id": 0, "bytes": 8})";
constexpr char kKernel[] = R"({"duration_ns": 5, "inputs": [0], "outputs": []})";

TEST(JsonGraph, TensorsLiveFromTheirFirstToTheirLastKernel) {
  const auto result = good(parse_graph(kTwoKernels, kGraphChunk));
  const analyzer::TaskGraph& graph = result;
  EXPECT_EQ(graph.program, "two kernels");
  ASSERT_EQ(graph.tensors.size(), 3u);  // w, x and the workspace; tensor 9 is never used
  EXPECT_TRUE(analyzer::is_persistent(graph.tensors[0]));
  EXPECT_EQ(graph.tensors[0].chunk_count, 2u);
  // allocate x, forward, allocate the workspace, update, free x, free the workspace
  ASSERT_EQ(graph.calls.size(), 6u);
  EXPECT_EQ(graph.tensors[1].allocate_call, 0u);
  EXPECT_EQ(graph.tensors[1].free_call, 4u);
  EXPECT_EQ(graph.tensors[2].allocate_call, 2u);
  EXPECT_EQ(graph.tensors[2].free_call, 5u);
  EXPECT_EQ(graph.calls[3].call.name, "update");
  EXPECT_EQ(graph.calls[3].operands, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(graph.calls[3].writes, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(graph.compute_ns, 3000u);
  EXPECT_EQ(graph.peak_bytes, 12 * kMiB);
  EXPECT_EQ(graph.op_count, 2u);
}

TEST(JsonGraph, NumbersThatMakeNoSense) {
  EXPECT_TRUE(has(why(with(R"({"id": 0, "bytes": -4})", kKernel)), "tensor 0: \"bytes\" is -4"));
  EXPECT_TRUE(has(why(with(R"({"id": 0, "bytes": 0})", kKernel)), "is 0"));
  EXPECT_TRUE(has(why(with(R"({"id": 0, "bytes": 1e300})", kKernel)), "1e+300"));
  EXPECT_TRUE(has(why(with(R"({"id": 0, "bytes": 99999999999999999})", kKernel)), "tensor 0"));
  EXPECT_TRUE(has(why(with(R"({"id": 0, "bytes": "8"})", kKernel)), "not a whole number"));
  EXPECT_TRUE(has(why(with(R"({"bytes": 8})", kKernel)), "tensor number 0 has no \"id\""));
  EXPECT_TRUE(has(why(with(kTensor, R"({"duration_ns": -1, "inputs": [0], "outputs": []})")), "kernel 0"));
}

TEST(JsonGraph, GraphsThatContradictThemselves) {
  const std::string twice = std::string(kTensor) + ", " + kTensor;
  EXPECT_TRUE(has(why(with(twice, kKernel)), "tensor 0 is listed twice"));
  EXPECT_TRUE(has(why(with(kTensor, R"({"duration_ns": 5, "inputs": [0, 5], "outputs": []})")), "names tensor 5"));
  EXPECT_TRUE(has(why(with(kTensor, R"({"duration_ns": 5, "inputs": [-1], "outputs": []})")), "-1"));
  EXPECT_TRUE(has(why(with(kTensor, R"({"duration_ns": 5, "outputs": []})")), "no list \"inputs\""));
  EXPECT_TRUE(has(why(with(kTensor, R"({"id": 1, "duration_ns": 5, "inputs": [0], "outputs": []})")), "has id 1"));
  EXPECT_TRUE(has(why(with(kTensor, R"({"device": 1, "duration_ns": 5, "inputs": [0], "outputs": []})")), "device"));
}

TEST(JsonGraph, KernelsThatReadWhatIsMadeLater) {
  const std::string tensors = R"({"id": 0, "bytes": 8}, {"id": 5, "bytes": 8})";
  const std::string early = R"({"name": "a", "duration_ns": 5, "inputs": [5], "outputs": [0]})";
  const std::string late = R"({"name": "b", "duration_ns": 5, "inputs": [0], "outputs": [5]})";
  EXPECT_EQ(why(with(tensors, early + ", " + late)),
            "kernel 0 (a) reads tensor 5 before kernel 1 (b) writes it: a cycle, since kernels run in the order of the "
            "list; put them in order, or make the tensor persistent");
  EXPECT_TRUE(parse_graph(with(tensors, early), kGraphChunk).ok());  // no kernel makes it: it comes from outside
  const std::string carried = R"({"id": 0, "bytes": 8}, {"id": 5, "bytes": 8, "persistent": 1})";
  EXPECT_TRUE(parse_graph(with(carried, early + ", " + late), kGraphChunk).ok());
}

TEST(JsonGraph, SizesThatNoMachineHas) {
  const std::string huge = R"({"id": 0, "bytes": 70368744177664, "persistent": 1})";
  const Result<analyzer::TaskGraph> graph = parse_graph(with(huge, kKernel), 4096);
  ASSERT_FALSE(graph.ok());
  EXPECT_TRUE(has(graph.status().message(), "take 17179869184 chunks of 4096 bytes"));
  std::string many;
  for (int i = 0; i < 20'000; ++i) {
    many += fmt::format(R"({}{{"id": {}, "bytes": 70368744177664}})", i == 0 ? "" : ", ", i);
  }
  EXPECT_TRUE(has(why(with(many, R"({"duration_ns": 5, "inputs": [], "outputs": []})")), "bytes together"));
}

TEST(JsonGraph, ItemsWithoutEnd) {
  std::string ids = "0";
  for (int i = 0; i < 1'100'000; ++i) ids += ",0";
  EXPECT_TRUE(has(why(with(kTensor, R"({"duration_ns": 5, "inputs": [)" + ids + R"(], "outputs": []})")), "parts"));
  EXPECT_TRUE(has(why(with("7", kKernel)), "\"tensors\" holds 7, which is no object"));
  const std::string other =
      R"({"junk": [)" + ids + R"(], "tensors": [)" + kTensor + R"(], "kernels": [)" + kKernel + "]}";
  EXPECT_TRUE(parse_graph(other, kGraphChunk).ok());
}

TEST(JsonGraph, ListsInListsWithoutEnd) {
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  EXPECT_TRUE(has(why(with(R"({"id": )" + deep + "}", kKernel)), "deep"));
  EXPECT_TRUE(parse_graph(R"({"junk": )" + deep + R"(, "tensors": [)" + kTensor + R"(], "kernels": [)" + kKernel + "]}",
                          kGraphChunk)
                  .ok());
}

// w0 on device 0 makes x0, which is copied to device 1 and used there with w1.
constexpr char kTwoDevices[] = R"({
  "tensors": [{"id": 0, "bytes": 4194304, "persistent": 1}, {"id": 1, "bytes": 2097152, "persistent": 1, "device": 1},
              {"id": 2, "bytes": 6291456}, {"id": 3, "bytes": 6291456, "device": 1}],
  "kernels": [{"name": "here", "duration_ns": 1000, "inputs": [0], "outputs": [2]},
              {"name": "move", "kind": "peer", "device": 1, "inputs": [2], "outputs": [3]},
              {"name": "there", "device": 1, "duration_ns": 5000, "inputs": [1, 3], "outputs": [1]}],
  "devices": 2})";

std::string two_devices_with(const std::string& from, const std::string& to) {
  std::string text = kTwoDevices;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(JsonGraph, SeveralDevices) {
  const auto result = good(parse_graph(kTwoDevices, kGraphChunk));
  const analyzer::TaskGraph& graph = result;
  EXPECT_EQ(graph.devices, 2u);
  EXPECT_EQ(graph.tensors[0].device, 0u);
  EXPECT_EQ(graph.tensors[1].device, 1u);
  const auto call = [&](const std::string& name) {
    return std::find_if(graph.calls.begin(), graph.calls.end(), [&](const auto& c) { return c.call.name == name; })
        ->call;
  };
  EXPECT_EQ(call("move").op, trace::OpKind::copy_peer);
  EXPECT_EQ(call("move").device, 0u);  // where it comes from
  EXPECT_EQ(call("move").duration_ns, 0u);
  EXPECT_EQ(call("there").device, 1u);
  EXPECT_EQ(graph.compute_ns, 5000u);      // of the device that computes longest
  EXPECT_EQ(graph.peak_bytes, 10 * kMiB);  // of the device that needs most: w0 and x
  EXPECT_EQ(graph.peak_chunks, 5u);
}

TEST(JsonGraph, DevicesThatDoNotFitTogether) {
  EXPECT_TRUE(has(why(two_devices_with(R"("devices": 2)", R"("devices": 1)")), "on device 1, and the graph has 1"));
  EXPECT_TRUE(has(why(two_devices_with(R"("devices": 2)", R"("devices": 65)")), "from 1 to 64"));
  EXPECT_TRUE(has(why(two_devices_with(R"("devices": 2)", R"("devices": 0)")), "from 1 to 64"));
  EXPECT_TRUE(has(why(two_devices_with(R"("there", "device": 1)", R"("there", "device": 0)")), "of kind \"peer\""));
  EXPECT_TRUE(has(why(two_devices_with(R"("there", "device": 1)", R"("there", "device": 7)")), "kernel 2 (there)"));
  EXPECT_TRUE(has(why(two_devices_with(R"("outputs": [3])", R"("outputs": [0])")), "of one device"));
  EXPECT_TRUE(has(why(two_devices_with(R"("outputs": [3])", R"("outputs": [1])")), "smaller"));
  EXPECT_TRUE(has(why(two_devices_with(R"("outputs": [3])", R"("outputs": [3, 1])")), "one input, one output"));
}

TEST(JsonGraph, TextsThatAreNoGraph) {
  EXPECT_TRUE(has(why(""), "no JSON"));
  EXPECT_TRUE(has(why("[1, 2]"), "no object"));
  EXPECT_TRUE(has(why("{}"), "\"tensors\" and \"kernels\""));
  EXPECT_TRUE(has(why(with(kTensor, "")), "empty"));
  const std::string whole = kTwoKernels;
  for (size_t length = 0; length < whole.size(); length += 7) EXPECT_NE(why(whole.substr(0, length)), "");
}

class GraphFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) {
    write_file(scratch_.path(name), content);
    return scratch_.path(name);
  }
  const Scratch scratch_;
};

TEST_F(GraphFiles, PlainAndPackedAreTheSame) {
  const std::string text = kTwoKernels;
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  const auto plain = read_graph(write("a.json", text), kGraphChunk);
  const auto other = read_graph(write("a.json.zst", packed), kGraphChunk);
  ASSERT_TRUE(plain.ok() && other.ok()) << plain.status().message() << other.status().message();
  EXPECT_EQ(to_text(plain.value()), to_text(other.value()));
  EXPECT_FALSE(read_graph(write("cut.json.zst", packed.substr(0, packed.size() - 3)), kGraphChunk).ok());
  EXPECT_FALSE(read_graph(write("not.json.zst", text), kGraphChunk).ok());
  EXPECT_FALSE(read_graph("/nonexistent/a.json", kGraphChunk).ok());
}

TEST_F(GraphFiles, MachinesAsTheProbeWritesThem) {
  probe::Machine measured;
  measured.device = "a device";
  measured.driver = "CUDA 13.0";
  measured.measured_at = "2026-01-02T03:04:05Z";
  measured.memory_bytes = uint64_t{80} << 30;
  measured.h2d_bytes_per_second = 51e9;
  measured.d2h_together_bytes_per_second = 40e9;
  measured.copy_latency_ns = 1499.6;
  const std::string path = write("machine.json", "");
  ASSERT_TRUE(probe::write_machine(measured, path).ok());
  const auto machine = good(find_machine(path));
  EXPECT_EQ(machine.h2d_bytes_per_s, 51e9);
  EXPECT_EQ(machine.d2h_bytes_per_s, analyzer::Machine{}.d2h_bytes_per_s);  // not measured
  EXPECT_EQ(machine.d2h_together_bytes_per_s, 40e9);
  EXPECT_EQ(machine.latency_ns, 1500u);
  EXPECT_FALSE(machine.has_ssd());
}

TEST_F(GraphFiles, MachinesWrittenByHand) {
  const std::string head = R"({"format": "reprise-machine", "version": 1, "device": "mine", "memory_bytes": 1)";
  const Result<analyzer::Machine> machine =
      find_machine(write("mine.json", head + R"(, "ssd_read_bytes_per_second": 3e9, "ssd_write_bytes_per_second": 2e9,
                                  "host_bytes": 1e9, "remap_ns_per_chunk": 0, "devices": 4, "devices_per_host_link": 2,
                                  "peer_bytes_per_second": 2e10, "peer_latency_ns": 0})"));
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_TRUE(machine.value().has_ssd());
  EXPECT_EQ(machine.value().host_bytes, 1'000'000'000u);
  EXPECT_EQ(machine.value().remap_ns_per_chunk, 0u);
  EXPECT_EQ(machine.value().devices, 4u);
  EXPECT_EQ(machine.value().devices_per_link, 2u);
  EXPECT_EQ(machine.value().peer_bytes_per_s, 2e10);
  EXPECT_EQ(machine.value().peer_latency_ns, 0u);
  const auto refused = find_machine(write("bad.json", head + R"(, "h2d_bytes_per_second": 0})"));
  EXPECT_TRUE(has(refused.status().message(), "bad.json"));
  EXPECT_FALSE(find_machine(write("text.json", "hello")).ok());
}

TEST(Machines, ByName) {
  for (const char* name : {"h200", "a100", "a100x8", "p100x4", "g10"}) EXPECT_TRUE(find_machine(name).ok()) << name;
  EXPECT_TRUE(find_machine("g10").value().has_ssd());
  EXPECT_EQ(find_machine("a100x8").value().devices, 8u);
  EXPECT_EQ(find_machine("p100x4").value().devices, 4u);
  const Status unknown = find_machine("h300").status();
  EXPECT_EQ(unknown.code(), StatusCode::invalid_argument);
  EXPECT_TRUE(has(unknown.message(), "p100x4"));
}

}  // namespace
}  // namespace reprise::tools::test
