// The probe as a program, where there is no driver: it starts, says so for every section, and ends with 3.
#include "tests/support/test.h"
#include "tools/lab/probe/output/report.h"
#include "tools/lab/probe/subjects/subprocess.h"

namespace reprise::probe {
namespace {

Outcome run_probe(std::vector<std::string> arguments, const std::string& driver = "/nonexistent/libcuda.so.1") {
  arguments.insert(arguments.begin(), REPRISE_PROBE);
  const auto outcome = run_command({arguments, {{"REPRISE_DRIVER", driver}}, 60});
  return outcome.ok() ? outcome.value() : Outcome{};
}

TEST(Program, WithoutADriverEverySectionSaysNoDevice) {
  const std::string path = testing::TempDir() + "probe" + std::to_string(getpid()) + ".json";
  const std::string machine = path + ".machine";
  const Outcome outcome = run_probe({"--json", path, "--machine", machine, "--quiet"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.error_output;
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, false);
  std::remove(path.c_str());
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["format"], "reprise-probe");
  EXPECT_EQ(json["device"], "none");
  ASSERT_EQ(json["sections"].size(), 8u);
  for (const Json& section : json["sections"]) EXPECT_EQ(section["state"], "no device") << section;
  EXPECT_FALSE(std::filesystem::exists(machine)) << "a machine that was not measured has no machine file";
}

TEST(Program, EachSectionAlone) {
  for (const char* section : {"1", "vmm", "3", "link", "5", "parameters", "7", "8"}) {
    const Outcome outcome = run_probe({"--sections", section, "--quiet"});
    EXPECT_EQ(outcome.exit_code, 3) << section;
    EXPECT_TRUE(has(outcome.output, "no device"));
  }
}

TEST(Program, ALibraryThatIsNoDriver) {
  const Outcome outcome = run_probe({"--sections", "2", "--quiet"}, "/lib/x86_64-linux-gnu/libm.so.6");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_TRUE(has(outcome.output, "is no CUDA driver"));
}

TEST(Program, BadInputIsOneLineAndTwo) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--sections", "9"},
                                                    {"--sections", ""},
                                                    {"--seconds", "0"},
                                                    {"--seconds", "many"},
                                                    {"--device", "-1"},
                                                    {"--scratch", "/nonexistent"},
                                                    {"--unknown"},
                                                    {"word"}}) {
    const Outcome outcome = run_probe(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments[0];
    EXPECT_EQ(std::count(outcome.error_output.begin(), outcome.error_output.end(), '\n'), 1) << outcome.error_output;
  }
}

TEST(Program, AnOutputThatCannotBeWritten) {
  const Outcome outcome = run_probe({"--sections", "2", "--quiet", "--json", "/nonexistent/x.json"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(has(outcome.error_output, "/nonexistent/x.json"));
}

}  // namespace
}  // namespace reprise::probe
