#include "tests/fuzz/seeds.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "analyzer/plan/plan.h"
#include "preload/facts/facts.h"
#include "tests/support/sample.h"
#include "tests/support/trace_bytes.h"

namespace reprise::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr char kGraph[] = R"({"model": "sample", "batch": 8, "devices": 2, "other": [1, [2, {"deep": [3]}], "text"],
 "tensors": [{"id": 7, "bytes": 4194304, "persistent": 1}, {"id": 3, "bytes": 2097152, "persistent": 0},
             {"id": 9, "bytes": 2097152, "device": 1}],
 "kernels": [{"id": 0, "name": "forward", "duration_ns": 1000, "inputs": [7], "outputs": [3], "pure": true},
             {"id": 1, "kind": "peer", "inputs": [3], "outputs": [9], "device": 0},
             {"id": 2, "name": "update", "duration_ns": 2000, "inputs": [3, 7], "outputs": [7],
              "workspace_bytes": 6291456}]})";

constexpr char kMachine[] = R"({"format": "reprise-machine", "version": 1, "device": "sample", "driver": "13.0",
 "simulated": true, "memory_bytes": 8589934592, "h2d_bytes_per_second": 2.4e10, "d2h_bytes_per_second": 2.4e10,
 "copy_latency_ns": 10000, "hbm_bytes_per_second": 4.8e12, "devices": 2, "remap_ns_per_chunk": 0})";

// A loop, a call, a predicate that chooses, shared memory, the stack, a table, an atomic.
constexpr char kDisassembly[] = R"(	.target	sm_90
	.section	.text.kernel,"ax",@progbits
kernel:
        /*0000*/  LDC R1, c[0x0][0x28] ;
        /*0010*/  ULDC.64 UR4, c[0x0][0x208] ;
        /*0020*/  LDC.64 R2, c[0x0][0x210] ;
        /*0030*/  S2R R6, SR_CTAID.X ;
        /*0040*/  BSSY B0, `(.L_x_1) ;
        /*0050*/  ISETP.GE.U32.AND P0, PT, R6, 0x20, PT ;
        /*0060*/  @!P0 LDC.64 R2, c[0x0][R6+0x218] ;
        /*0070*/  IMAD.WIDE R8, R6, 0x4, R2 ;
        /*0080*/  @P0 BRA `(.L_x_1) ;
        /*0090*/  LDG.E.64 R10, desc[UR4][R8.64+0x8] ;
        /*00a0*/  STS.64 [R6], R10 ;
        /*00b0*/  STL [R1+0x4], R2 ;
        /*00c0*/  BSYNC B0 ;
.L_x_1:
        /*00d0*/  LDL R12, [R1+0x4] ;
        /*00e0*/  LDS.64 R14, [R6] ;
        /*00f0*/  MOV R20, 0x110 ;
        /*0100*/  CALL.REL.NOINC `(function) ;
        /*0110*/  ATOMG.E.ADD.STRONG.GPU PT, R4, desc[UR4][R8.64], R12 ;
        /*0120*/  @P0 BRX R2 -0x90 (*"BRANCH_TARGETS .L_x_1,.L_x_1"*) ;
        /*0130*/  EXIT ;
function:
        /*0140*/  IADD3 R8, P1, R8, R14, RZ ;
        /*0150*/  IADD3.X R9, R9, R15, RZ, P1, !PT ;
        /*0160*/  RET.REL.NODEC R20 `(kernel) ;
)";

constexpr const char* kAmounts[] = {"12GiB",        "1.5G",        "800 MB", "50%",
                                    "30%..100%:5%", "40GiB,30GiB", "4096",   " 1e3 KiB "};

constexpr const char* kCommandLines[] = {"run\n--device\nsim\n--budget\n60%\n--\nchargpt\n--steps\n5",
                                         "plan\na.trace\n--budget=70%\n--policy\nlru\n-o\nb.plan",
                                         "simulate\na.trace\n--budget\n60%..100%:10%\n--machine\nh200",
                                         "workload\nllama-lora\n--tokens\n1024\n-o\nlora.json.zst",
                                         "export\na.trace\n--format\nperfetto\n-o\na.json",
                                         "audit\n--device\nsim\n--\nchargpt",
                                         "help\nenvironment",
                                         "facts"};

constexpr char kVariables[] =
    "REPRISE_BUDGET=60%\nREPRISE_SAFETY=audited\nREPRISE_HOST_MEMORY=8GiB\nREPRISE_EXAMINE=2.5\nREPRISE_LOG=debug\n"
    "REPRISE_WAIT_FOR_PLAN=1\nREPRISE_BUGDET=5";

facts::KernelFacts sample_facts() {
  facts::KernelFacts facts;
  facts.kernel = 0x0123456789abcdef;
  facts.name = "_Z5scalePKfPff";
  facts.device = "simulated";
  facts.launches = 4;
  facts.equal = 4;
  facts.first_day = facts.last_day = "2026-11-23";
  facts.slots = {{.parameter_offset = 0, .kept = 4, .reached = 4, .least_bytes = 4096, .most_bytes = 65536},
                 {.parameter_offset = 8, .overwritten = 4, .least_bytes = 4096, .most_bytes = 65536, .guarded = 12}};
  facts.shapes = {{0x89abcdef01234567, 12}};
  return facts;
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void add_files(const fs::path& folder, const std::string& reader, std::vector<Seed>& to) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) to.push_back({reader, entry.path().filename().string(), content(entry.path())});
  }
}

void add_texts(std::vector<Seed>& to) {
  to.push_back({"disassembly", "some", kDisassembly});
  to.push_back({"graph", "two_devices", kGraph});
  to.push_back({"machine", "some_keys", kMachine});
  to.push_back({"run_log", "sample", tools::test::sample_run_log()});
  to.push_back({"variables", "some", kVariables});
  for (const char* text : kAmounts) to.push_back({"amounts", "amount" + std::to_string(to.size()), text});
  for (const char* text : kCommandLines) to.push_back({"command_line", "line" + std::to_string(to.size()), text});
}

}  // namespace

std::vector<Seed> seeds() {
  std::vector<Seed> all;
  const std::string trace = trace::test::sample_trace().bytes();
  all.push_back({"trace", "every_kind", trace});
  all.push_back({"records", "every_kind", trace::test::records_of(trace)});
  for (const fs::directory_entry& entry : fs::directory_iterator(FUZZ_RECORDINGS)) {
    if (entry.path().extension() == ".trace") all.push_back({"trace", entry.path().stem().string(), content(entry)});
  }
  all.push_back({"plan", "sample", plan::serialize(tools::test::sample_plan())});
  const std::string facts = facts::to_text(sample_facts());
  all.push_back({"facts", "sample", facts.substr(0, facts.rfind("checksum"))});
  add_files(FUZZ_IMAGES, "image", all);
  add_texts(all);
  return all;
}

std::vector<Seed> regressions() {
  std::vector<Seed> all;
  for (const fs::directory_entry& folder : fs::directory_iterator(FUZZ_REGRESSIONS)) {
    if (folder.is_directory()) add_files(folder.path(), folder.path().filename().string(), all);
  }
  return all;
}

}  // namespace reprise::fuzz
