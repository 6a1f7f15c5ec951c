// `reprise doctor` on machines that lack something: each finding names it and says what to do, and the exit code is 1
// when Reprise could not work there.
#include "tests/e2e/cli/installed.h"
#include "tools/doctor/checks.h"

namespace reprise::tools::test {
namespace {

using nlohmann::json;

class Doctor : public Installed {
 protected:
  void SetUp() override {
    Installed::SetUp();
    std::filesystem::copy_file(REPRISE_SIM_DRIVER, path("lib/sim/libcuda.so.1"),
                               std::filesystem::copy_options::overwrite_existing);
  }
  // REPRISE_SIM_FAIL makes the simulated driver one that lacks what the list names.
  json examine(const std::string& failing, Words options = {"--device", "sim"}) {
    options.insert(options.begin(), {"doctor", "--json"});
    Start start = this->start(options);
    start.environment["REPRISE_SIM_FAIL"] = failing;
    for (const auto& [name, value] : environment_) start.environment[name] = value;
    const Finished finished = run(start);
    exit_code_ = finished.exit_code;
    return json::parse(finished.out, nullptr, false);
  }
  static json check(const json& report, const std::string& name) {
    for (const json& one : report["checks"]) {
      if (one["name"] == name) return one;
    }
    return json::object();
  }
  void expect_missing(const std::string& failing, const std::string& name, const std::string& word) {
    const json found = check(examine(failing), name);
    EXPECT_EQ(exit_code_, 1) << failing;
    EXPECT_EQ(found.value("finding", ""), "missing") << failing;
    EXPECT_TRUE(has(found.value("value", ""), word)) << found;
    EXPECT_NE(found.value("advice", ""), "") << found;
  }

  std::map<std::string, std::string> environment_;
  int exit_code_ = -1;
};

TEST_F(Doctor, TheSimulatedDeviceIsFine) {
  const json report = examine("");
  EXPECT_EQ(exit_code_, 0) << report.dump(1);
  EXPECT_EQ(report["ok"], true);
  for (const char* name : {"reprise", "driver", "device 0", "device 0 virtual memory", "device 0 pinned memory",
                           "device 0 memory by process", "host memory", "host tier", "locked memory limit",
                           "temporary folder", "preloaded library", "call stacks", "NUMA", "container"}) {
    EXPECT_FALSE(check(report, name).empty()) << name;
  }
}

TEST_F(Doctor, WhereNobodyTellsMemoryByProcessThatIsSaid) {
  EXPECT_EQ(check(examine(""), "device 0 memory by process")["value"], "told");
  environment_["REPRISE_SIM_PROCESSES"] = "0";
  const json found = check(examine(""), "device 0 memory by process");
  EXPECT_EQ(exit_code_, 0);
  EXPECT_EQ(found.value("finding", ""), "note") << found;
  EXPECT_TRUE(has(found.value("advice", ""), "--pid=host")) << found;
}

// What a bug report is asked for first.
TEST_F(Doctor, TheSystemAndTheVariablesThatMatterAreNamed) {
  environment_["REPRISE_POLICY"] = "lru";
  environment_["PYTORCH_ALLOC_CONF"] = "backend:native";
  environment_["ADAS_PASSWORD"] = "sesame";
  const json report = examine("");
  EXPECT_TRUE(has(check(report, "system").value("value", ""), "glibc 2.")) << report.dump(1);
  EXPECT_NE(check(report, "reprise").value("value", "").find('('), std::string::npos) << "the commit";
  const std::string variables = check(report, "variables").value("value", "");
  EXPECT_TRUE(has(variables, "REPRISE_POLICY=lru"));
  EXPECT_TRUE(has(variables, "PYTORCH_ALLOC_CONF=backend:native"));
  EXPECT_FALSE(has(report.dump(), "sesame"));
}

// By the parser of the library, which would say it only when a program runs.
TEST_F(Doctor, AValueThatTheLibraryCannotReadIsNoGoodOne) {
  environment_["REPRISE_POLICY"] = "lru";
  environment_["REPRISE_BUDGET"] = "95%";
  environment_["REPRISE_SAFETY"] = "audited";
  EXPECT_EQ(check(examine(""), "variables").value("finding", ""), "good");
  environment_["REPRISE_BUDGET"] = "105%";
  environment_["REPRISE_SAFETY"] = "none";
  environment_["REPRISE_PLAN_LIMIT"] = "soon";
  const json found = check(examine(""), "variables");
  EXPECT_EQ(exit_code_, 0) << "everything works without them";
  EXPECT_EQ(found.value("finding", ""), "note") << found;
  const std::string advice = found.value("advice", "");
  for (const char* wrong :
       {"REPRISE_BUDGET=105% is not readable (more than all: at most 100%)",
        "REPRISE_SAFETY=none is not readable (strict|", "REPRISE_PLAN_LIMIT=soon is not readable (number)"}) {
    EXPECT_TRUE(has(advice, wrong));
  }
  EXPECT_FALSE(has(advice, "POLICY"));
}

// Where `run` refuses to start anything, it cannot work.
TEST_F(Doctor, AFolderThatNothingCanBePreloadedFromIsMissing) {
  for (const char* name : {"with space", "with:colon"}) {
    std::filesystem::create_directory(path(name));
    for (const char* folder : {"bin", "lib"}) {
      std::filesystem::copy(path(folder), path(name) + "/" + folder, std::filesystem::copy_options::recursive);
    }
    Start start = this->start({"doctor", "--device", "sim", "--json"});
    start.arguments[0] = path(name) + "/bin/reprise";
    const Finished finished = run(start);
    const json found = check(json::parse(finished.out, nullptr, false), "preloaded library");
    EXPECT_EQ(finished.exit_code, 1) << finished.out;
    EXPECT_EQ(found.value("finding", ""), "missing") << found;
    EXPECT_TRUE(has(found.value("value", ""), "there is a space or a colon in this path")) << found;
    EXPECT_EQ(found.value("advice", ""), "install Reprise elsewhere");
    start.arguments = {start.arguments[0], "run", "--device", "sim", "--budget", "1GiB", "--", "/bin/true"};
    EXPECT_TRUE(has(run(start).err, "there is a space or a colon in this path")) << "run says so, too";
  }
}

TEST_F(Doctor, WhatTheDriverLacksIsNamed) {
  expect_missing("cuInit=100", "driver", "CUDA_ERROR_NO_DEVICE");
  expect_missing("cuDeviceGetCount=100", "devices", "CUDA_ERROR_NO_DEVICE");
  expect_missing("cuDeviceGetAttribute=801", "device 0 virtual memory", "not supported");
  expect_missing("cuMemGetAllocationGranularity=801", "device 0 virtual memory", "not supported");
  expect_missing("cuMemMap=801", "device 0 virtual memory", "cuMemMap failed: CUDA_ERROR_NOT_SUPPORTED");
  expect_missing("cuMemCreate=2", "device 0 virtual memory", "CUDA_ERROR_OUT_OF_MEMORY");
  expect_missing("cuMemHostAlloc=2", "device 0 pinned memory", "cannot be pinned");
}

TEST_F(Doctor, NoDriverAtAll) {
  environment_["REPRISE_DRIVER"] = path("no/libcuda.so.1");
  const json report = examine("", {});
  EXPECT_EQ(exit_code_, 1);
  EXPECT_EQ(report["ok"], false);
  EXPECT_TRUE(has(check(report, "driver").value("value", ""), "no driver"));
  EXPECT_TRUE(has(check(report, "driver").value("advice", ""), "12.4 or newer"));
}

TEST_F(Doctor, CuptiIsAskedForAndDoneWithout) {
  environment_["REPRISE_DRIVER"] = path("lib/sim/libcuda.so.1");
  environment_["CUDA_HOME"] = path("tmp");
  environment_["LD_LIBRARY_PATH"] = path("tmp");
  std::filesystem::copy_file(REPRISE_EMPTY_LIBRARY, path("tmp/libcupti.so.13"));
  EXPECT_EQ(check(examine("", {}), "CUPTI").value("finding", ""), "good");
  write("tmp/libcupti.so.13", "no library");
  write("tmp/libcupti.so", "no library");
  const json report = examine("", {});
  EXPECT_EQ(check(report, "CUPTI").value("finding", ""), "note") << report.dump(1);
  EXPECT_EQ(exit_code_, 0) << "kernels are timed otherwise";
}

TEST_F(Doctor, AFolderThatCannotBeWrittenAndALibraryThatIsGone) {
  environment_["TMPDIR"] = path("no/such/folder");
  EXPECT_EQ(check(examine(""), "temporary folder").value("finding", ""), "missing");
  std::filesystem::remove(path("lib/reprise/libreprise.so"));
  EXPECT_EQ(check(examine(""), "preloaded library").value("finding", ""), "missing");
  EXPECT_EQ(exit_code_, 1);
}

TEST_F(Doctor, TheTextEndsWithWhatIsMissing) {
  Start start = this->start({"doctor", "--device", "sim"});
  EXPECT_TRUE(has(run(start).out, "Reprise can work here.\n"));
  start.environment["REPRISE_SIM_FAIL"] = "cuMemMap=801,cuMemHostAlloc=2";
  EXPECT_TRUE(has(run(start).out, "missing: device 0 virtual memory, device 0 pinned memory.\n"));
  const std::string help = reprise({"doctor", "--help"}).out;
  EXPECT_TRUE(has(help, "Exit code: 0"));
  EXPECT_TRUE(has(help, "without its names: reprise export a.trace --redact"));
}

Finding host_tier(uint64_t available, uint64_t group) {
  std::vector<Check> checks;
  check_host({uint64_t{64} << 30, available, group, 65536}, checks);
  for (const Check& one : checks) {
    if (one.name == "host tier") return one.finding;
  }
  return Finding::good;
}

TEST(DoctorHost, LittleMemoryIsANoteAndNoneIsMissing) {
  EXPECT_EQ(host_tier(uint64_t{32} << 30, 0), Finding::good);
  EXPECT_EQ(host_tier(uint64_t{2} << 30, 0), Finding::note);
  EXPECT_EQ(host_tier(uint64_t{32} << 30, uint64_t{1} << 30), Finding::note);
  EXPECT_EQ(host_tier(uint64_t{32} << 30, uint64_t{32} << 20), Finding::missing);
}

TEST(DoctorHost, TheLockedMemoryLimitIsShown) {
  std::vector<Check> checks;
  check_host({1, 1, 0, 65536}, checks);
  EXPECT_EQ(checks[3].name, "locked memory limit");
  EXPECT_TRUE(has(checks[3].value, "64.0 KiB"));
}

TEST(DoctorHost, AnAddressSpaceThatIsTooSmallIsMissing) {
  const auto finding = [](uint64_t bytes) {
    std::vector<Check> checks;
    check_host({1, 1, 0, 0, bytes}, checks);
    for (const Check& one : checks) {
      if (one.name == "address space") return one.finding;
    }
    return Finding::note;
  };
  EXPECT_EQ(finding(0), Finding::good);
  EXPECT_EQ(finding(uint64_t{128} << 30), Finding::good);
  EXPECT_EQ(finding(uint64_t{4} << 30), Finding::missing);
}

// The probe is a program of its own; here one that only notes how it was called.
TEST_F(Doctor, MeasuringIsLeftToTheProbe) {
  write("bin/reprise-probe", "#!/bin/sh\necho \"$@\"\nexit ${PROBE_ENDS:-0}\n");
  std::filesystem::permissions(path("bin/reprise-probe"), std::filesystem::perms::owner_all);
  const auto measured = [&](const std::string& ends) {
    Start start = this->start({"doctor", "--device", "sim", "--measure", path("m.json"), "--sections", "2,5"});
    start.environment["PROBE_ENDS"] = ends;
    return run(start);
  };
  const Finished good = well(measured("0"));
  EXPECT_TRUE(has(good.out, "--sections 2,5 --machine " + path("m.json")));
  EXPECT_TRUE(has(good.err, "m.json"));
  EXPECT_EQ(measured("1").exit_code, 1);
  EXPECT_EQ(measured("3").exit_code, 1);
}

TEST_F(Doctor, WithoutTheProbeOrAFileToWriteNothingIsMeasured) {
  const auto refused = [&](const std::string& file) {
    const Finished finished = run(start({"doctor", "--device", "sim", "--measure", file}));
    EXPECT_EQ(finished.exit_code, 1);
    return finished.err;
  };
  EXPECT_TRUE(has(refused(path("m.json")), "reprise-probe is not installed"));
  EXPECT_TRUE(has(refused("/nowhere/m.json"), "/nowhere"));
}

}  // namespace
}  // namespace reprise::tools::test
