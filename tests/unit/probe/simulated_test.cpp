// The probe against the simulated device: sections 2, 3, 5 and 6 measure and their facts are the known ones; the shim
// counts; ctrl-C ends in the ordinary way. No test looks at a time.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "tools/probe/machine_file.h"
#include "tools/probe/subprocess.h"

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
    return {REPRISE_PROBE, "--sections", sections, "--seconds", seconds,
            "--quiet",     "--json",     path_,    "--machine", machine_path_};
  }
  Json document() const {
    std::ifstream file(path_);
    return Json::parse(file, nullptr, false);
  }
  // The first section of a run that is expected to succeed.
  Json section(const char* name, const char* seconds) const {
    const auto outcome = run_command(
        {command(name, seconds), {{"REPRISE_DRIVER", REPRISE_SIM_DRIVER}, {"REPRISE_SIM_MEMORY", "1GiB"}}, 200});
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

TEST_F(Simulated, Vmm) {
  const Json section = this->section("vmm", "4");
  const Json& facts = section["facts"];
  EXPECT_EQ(facts["granularity device minimum"], 2 << 20);
  EXPECT_EQ(facts["PROT_READ honoured"]["honoured"], true);
  EXPECT_TRUE(has_measurement(section, "cuMemMap")) << section["notes"];
  EXPECT_TRUE(has_measurement(section, "cuMemSetAccess whole range"));
  EXPECT_TRUE(has_measurement(section, "launch in another thread"));
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
  const auto machine = read_machine(machine_path_);
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_TRUE(machine.value().simulated);
  EXPECT_TRUE(machine.value().launch_latency_ns);
  EXPECT_FALSE(machine.value().h2d_bytes_per_second) << "section 4 did not run";
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

TEST_F(Simulated, TheShimCountsEveryLaunch) {
  const Json facts = section("interception", "60")["facts"];
  EXPECT_EQ(facts["probe"]["launches_seen"], 1000);
  EXPECT_EQ(facts["runtime, shared"]["launches_seen"], 800) << facts;
  EXPECT_TRUE(facts["cuGetProcAddress = dlsym, legacy stream"]["differing"].empty());
}

TEST_F(Simulated, InterruptedItStillWritesWhatItHas) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("REPRISE_DRIVER", REPRISE_SIM_DRIVER, 1);
    setenv("REPRISE_SIM_MEMORY", "1GiB", 1);
    std::freopen("/dev/null", "w", stdout);
    std::vector<std::string> texts = command("aliasing,vmm", "300");
    std::vector<char*> arguments;
    for (std::string& text : texts) arguments.push_back(text.data());
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(99);
  }
  std::this_thread::sleep_for(std::chrono::seconds(2));
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  const Json json = document();
  ASSERT_TRUE(json.is_object());
  ASSERT_EQ(json["sections"].size(), 1u) << "the section after the interrupted one does not start";
  EXPECT_EQ(json["sections"][0]["state"], "partial");
}

}  // namespace
}  // namespace reprise::probe
