// The probe against the simulated device: sections 2, 3, 5 and 6 measure and their facts are the known ones; the shim
// counts; ctrl-C ends in the ordinary way. No test looks at a time.
#include "tests/support/test.h"
#include "tools/lab/probe/output/machine_file.h"
#include "tools/lab/probe/subjects/subprocess.h"

namespace reprise::probe {
namespace {

class Simulated : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "probe-simulated" + std::to_string(getpid()) + ".json";
  std::string machine_path_ = path_ + ".machine";
  ~Simulated() override {
    std::remove(path_.c_str());
    std::remove(machine_path_.c_str());
  }

  std::vector<std::string> command(const char* sections, const char* seconds) const {
    return {REPRISE_PROBE, "--sections", sections,    "--seconds",   seconds,     "--quiet",
            "--json",      path_,        "--machine", machine_path_, "--scratch", testing::TempDir()};
  }
  Json document() const {
    std::ifstream file(path_);
    return Json::parse(file, nullptr, false);
  }
  // The first section of a run that is expected to succeed. `programs`: a folder whose programs are found first.
  Json section(const char* name, const char* seconds, const char* failing = "",
               const std::string& programs = "/nonexistent") const {
    const char* const path = std::getenv("PATH");
    const auto outcome = run_command({command(name, seconds),
                                      {{"REPRISE_DRIVER", REPRISE_SIM_DRIVER},
                                       {"REPRISE_SIM_MEMORY", "1GiB"},
                                       {"REPRISE_SIM_FAIL", failing},
                                       {"PATH", programs + ":" + (path ? path : "/usr/bin:/bin")}},
                                      200});
    EXPECT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.value().exit_code, 0) << outcome.value().output << outcome.value().error_output;
    const Json json = document();
    EXPECT_EQ(json.value("device", ""), "simulated");
    return json.is_object() && json["sections"].size() == 1 ? json["sections"][0] : Json::object();
  }
};

bool has_measurement(const Json& section, const std::string& name) {
  for (const Json& measurement : section["measurements"]) {
    if (measurement["name"] == name && measurement["repeats"].get<int>() > 0) return true;
  }
  return false;
}

// Of the first such measurement.
double median(const Json& section, const std::string& name, const char* key, const Json& value) {
  for (const Json& measurement : section["measurements"]) {
    if (measurement["name"] == name && measurement["parameters"].value(key, Json()) == value)
      return measurement["median"];
  }
  return -1;
}

TEST_F(Simulated, Vmm) {
  const Json section = this->section("vmm", "4");
  const Json& facts = section["facts"];
  EXPECT_EQ(facts["granularity device minimum"], 2 << 20);
  EXPECT_EQ(facts["PROT_READ honoured"]["honoured"], true);
  EXPECT_TRUE(has_measurement(section, "cuMemMap")) << section["notes"];
  EXPECT_TRUE(has_measurement(section, "cuMemSetAccess whole range"));
  EXPECT_TRUE(has_measurement(section, "launch in another thread"));
  EXPECT_TRUE(has_measurement(section, "remap one chunk"));
  const auto machine = good(read_machine(machine_path_));
  ASSERT_TRUE(machine.remap_ns_per_chunk);
  EXPECT_EQ(*machine.remap_ns_per_chunk, median(section, "remap one chunk", "gpu", "busy"));
  EXPECT_FALSE(machine.ssd_bytes) << "section 4 did not run";
}

// The disk is this machine's own, whatever the device.
TEST_F(Simulated, LinkFillsTheMachineFile) {
  const Json section = this->section("link", "15");
  const auto machine = good(read_machine(machine_path_));
  EXPECT_TRUE(machine.simulated);
  EXPECT_TRUE(machine.d2h_together_bytes_per_second) << section["notes"];
  EXPECT_TRUE(machine.host_bytes);
  const std::string file_system = section["facts"].value("disk file system", "");
  const bool disk = section["facts"].value("disk O_DIRECT", false) && !file_system.ends_with("memory");
  EXPECT_TRUE(has_measurement(section, "disk read")) << section["notes"];
  EXPECT_EQ(machine.ssd_read_bytes_per_second.has_value(), disk) << file_system;
  EXPECT_EQ(machine.ssd_latency_ns.has_value(), disk);
  EXPECT_EQ(machine.ssd_bytes.value_or(0) > 0, disk);
  if (disk) {
    EXPECT_GE(*machine.ssd_write_bytes_per_second, median(section, "disk write", "depth", 16));
  }
}

TEST_F(Simulated, AliasedRangesAgree) {
  const Json facts = section("aliasing", "4")["facts"];
  EXPECT_EQ(facts["the check sees stale words"], true);
  int ways = 0;
  for (const auto& [name, fact] : facts.items()) {
    if (!fact.is_object()) continue;
    ++ways;
    EXPECT_GT(fact["rounds"], 0) << name;
    EXPECT_EQ(fact["mismatches"], 0) << name;
  }
  EXPECT_EQ(ways, 10);
}

TEST_F(Simulated, LatenciesFillTheMachineFile) {
  const Json section = this->section("latency", "10");
  EXPECT_TRUE(has_measurement(section, "launch call, empty kernel")) << section["notes"];
  EXPECT_TRUE(has_measurement(section, "event record"));
  EXPECT_TRUE(has_measurement(section, "cuMemAllocAsync"));
  const auto machine = good(read_machine(machine_path_));
  EXPECT_TRUE(machine.simulated);
  EXPECT_TRUE(machine.launch_latency_ns);
  EXPECT_FALSE(machine.h2d_bytes_per_second) << "section 4 did not run";
}

TEST_F(Simulated, WhatADriverLacksTakesNothingElse) {
  const Json section =
      this->section("latency", "10", "cuMemAllocAsync=801,cuStreamWaitValue32=801,cuLaunchHostFunc=801");
  EXPECT_EQ(section["state"], "partial");
  EXPECT_EQ(section["notes"].size(), 3u) << section["notes"];
  EXPECT_TRUE(has_measurement(section, "cuMemAlloc")) << section["notes"];
  EXPECT_TRUE(has_measurement(section, "module load")) << section["notes"];
}

TEST_F(Simulated, ParametersAreThoseOfTheSource) {
  const Json facts = section("parameters", "60")["facts"];
  EXPECT_EQ(facts["probe_fill as CUfunction"], Json::parse("[[0,8],[8,8],[16,4]]"));
  EXPECT_EQ(facts["probe_fill as CUkernel"], facts["probe_fill as CUfunction"]);
  EXPECT_EQ(facts["probe_large_parameters as CUkernel"], Json::parse("[[0,8],[8,4088]]"));
  EXPECT_EQ(facts["probe"]["functions_with_parameter_info"], 1);
  EXPECT_EQ(facts["probe"]["launches_without_device_pointer"], 1000);
  EXPECT_EQ(facts["runtime, shared"]["launches_with_device_pointer"], 800) << facts;
}

// A debugger that does what the probe's commands ask for, in this order; `ending`: what it does with the program.
class Debugged : public Simulated {
 protected:
  std::string folder_ = testing::TempDir() + "probe-debugger" + std::to_string(getpid());
  ~Debugged() override { std::filesystem::remove_all(folder_); }
  Json facts(const std::string& ending) {
    std::filesystem::create_directories(folder_);
    const std::string program = folder_ + "/cuda-gdb";
    std::ofstream(program) << "#!/bin/sh\n"
                              "while [ \"$1\" != --args ]; do\n"
                              "  case \"$1\" in\n"
                              "    'set environment LD_PRELOAD '*) preload=${1#set environment LD_PRELOAD } ;;\n"
                              "    'set cuda break_on_launch application') stops=yes ;;\n"
                              "    run) asked=yes ;;\n"
                              "  esac\n"
                              "  shift\n"
                              "done\n"
                              "shift\n"
                              "[ \"$stops$asked\" = yesyes ] && echo '0x10 in probe_empty<<<(1,1,1),(32,1,1)>>> ()'\n"
                           << ending;
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return section("interception", "60", "", folder_);
  }
};

TEST_F(Debugged, TheShimIsInTheProgramAlone) {
  const Json found = facts("test -z \"$LD_PRELOAD\" || exit 9\nLD_PRELOAD=$preload \"$@\"\nexit 1\n")["facts"];
  EXPECT_EQ(found["cuda-gdb, without the shim"], Json::parse(R"({"ran_to_the_end": true, "stopped_in_kernel": true})"));
  EXPECT_EQ(found["cuda-gdb, with the shim"],
            Json::parse(R"({"ran_to_the_end": true, "stopped_in_kernel": true, "launches_seen": 1000})"));
}

TEST_F(Debugged, WhatTheShimBreaksIsToldFromWhatDoesNotWorkHere) {
  const Json broken = facts("test -z \"$preload\" || { echo it broke >&2; exit 3; }\n\"$@\"\n");
  EXPECT_EQ(broken["facts"]["cuda-gdb, with the shim"]["ran_to_the_end"], false);
  EXPECT_EQ(broken["facts"]["cuda-gdb, with the shim"]["ending"], "ended with 3: it broke");
  const Json nowhere = facts("echo no ptrace >&2; exit 1\n");
  EXPECT_FALSE(nowhere["facts"].contains("cuda-gdb, with the shim"));
  EXPECT_TRUE(has(nowhere["notes"].dump(), "cuda-gdb, without the shim: ended with 1: no ptrace"));
}

TEST_F(Simulated, TheShimCountsEveryLaunch) {
  const Json facts = section("interception", "60")["facts"];
  EXPECT_EQ(facts["probe"]["launches_seen"], 1000);
  EXPECT_EQ(facts["runtime, shared"]["launches_seen"], 800) << facts;
  EXPECT_EQ(facts["runtime, shared"]["memory_calls"].value("cuMemAlloc", 0), 1) << facts;
  EXPECT_TRUE(facts["cuGetProcAddress = dlsym, legacy stream"]["differing"].empty());
}

pid_t start(std::vector<std::string> texts) {
  const pid_t child = fork();
  if (child != 0) return child;
  setenv("REPRISE_DRIVER", REPRISE_SIM_DRIVER, 1);
  setenv("REPRISE_SIM_MEMORY", "1GiB", 1);
  std::freopen("/dev/null", "w", stdout);
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(99);
}

int end_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// The process id of the worker of the probe `parent`; 0: it has none.
pid_t worker_of(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  pid_t child = 0;
  return file >> child ? child : 0;
}

// Waits until the worker of the probe `parent` has handed over a first result; it has then most of its section before
// it on a machine of any speed. Its process id; 0: that did not come within a minute.
pid_t measuring_worker_of(pid_t parent) {
  for (int i = 0; i < 6000; ++i) {
    const pid_t worker = worker_of(parent);
    std::ifstream file("/proc/" + std::to_string(worker) + "/io");
    for (std::string key, value; worker != 0 && file >> key >> value;) {
      if (key == "wchar:" && value != "0") return worker;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 0;
}

// False for a zombie, too: it has ended, but its parent has not asked for the exit code yet.
bool runs(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(") ");
  return end != std::string::npos && text[end + 2] != 'Z';
}

TEST_F(Simulated, AWorkerThatDiesLosesOnlyWhatItHadNotMeasured) {
  const pid_t probe = start(command("vmm,latency", "20"));
  const pid_t worker = measuring_worker_of(probe);
  ASSERT_GT(worker, 0);
  kill(worker, SIGKILL);
  const int status = end_of(probe);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  const Json json = document();
  ASSERT_EQ(json["sections"].size(), 2u) << json;
  EXPECT_EQ(json["sections"][0]["state"], "failed");
  EXPECT_EQ(json["sections"][0]["facts"].value("granularity device minimum", 0), 2 << 20);
  EXPECT_EQ(json["sections"][1]["state"], "done");
}

TEST_F(Simulated, KilledItLeavesTheSectionsThatAreDone) {
  const pid_t probe = start(command("latency,aliasing", "100"));
  for (int i = 0; i < 300; ++i) {
    const Json json = document();
    if (json.is_object() && json["sections"].size() == 1) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  pid_t worker = 0;
  for (int i = 0; i < 50 && worker == 0; ++i) {
    worker = worker_of(probe);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  kill(probe, SIGKILL);
  end_of(probe);
  EXPECT_EQ(document()["sections"][0]["name"], "latency");
  EXPECT_TRUE(read_machine(machine_path_).ok());
  ASSERT_GT(worker, 0);
  for (int i = 0; i < 100 && runs(worker); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(runs(worker)) << "the worker goes on without its probe";
}

TEST_F(Simulated, InterruptedItStillWritesWhatItHas) {
  const pid_t child = start(command("aliasing,vmm", "300"));
  ASSERT_GT(measuring_worker_of(child), 0);
  kill(child, SIGINT);
  const int status = end_of(child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  const Json json = document();
  ASSERT_TRUE(json.is_object());
  ASSERT_EQ(json["sections"].size(), 1u) << "the section after the interrupted one does not start";
  EXPECT_EQ(json["sections"][0]["state"], "partial");
}

}  // namespace
}  // namespace reprise::probe
