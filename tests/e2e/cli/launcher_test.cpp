// The launcher is as transparent as the shim: what the program does to the world, `reprise run` does.
#include "tests/e2e/cli/installed.h"
#include "tests/support/sample.h"

namespace reprise::tools::test {
namespace {

class Launcher : public Installed {
 protected:
  Start shell(const std::string& script, Words options = {"run", "--budget", "1GiB"}) const {
    options.insert(options.end(), {"-o", path("tmp/report.html"), "--", "/bin/sh", "-c", script});
    return start(options);
  }
  Start with(Words options, const std::string& script) const {
    options.insert(options.begin(), {"run", "--budget", "1GiB"});
    return shell(script, options);
  }
};

TEST_F(Launcher, OutputInputAndExitCodeAreTheProgramsOwn) {
  Start start = shell("cat; printf 'to \\000 out'; printf 'to err' >&2; exit 42");
  start.input = "from in\n";
  const Finished finished = run(start);
  EXPECT_EQ(finished.exit_code, 42);
  EXPECT_EQ(finished.out, std::string("from in\nto \0 out", 16));
  EXPECT_TRUE(has(finished.err, "\nto err")) << "behind the line that there is no driver: ";
}

TEST_F(Launcher, ItDiesOfTheSameSignal) {
  for (const int signal : {SIGTERM, SIGKILL, SIGSEGV, SIGABRT}) {
    EXPECT_EQ(run(shell("kill -" + std::to_string(signal) + " $$")).signal, signal);
  }
}

TEST_F(Launcher, SignalsReachTheProgram) {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP}) {
    Start start = shell(
        "trap 'echo caught; exit 9' USR1 USR2 TERM INT HUP; echo ready; for i in $(seq 500); do sleep 0.01; done");
    start.meanwhile = [signal](int pid) { kill(pid, signal); };
    const Finished finished = run(start);
    EXPECT_EQ(finished.exit_code, 9) << signal;
    EXPECT_EQ(finished.out, "ready\ncaught\n") << signal;
  }
}

TEST_F(Launcher, AnIgnoredSignalStaysIgnored) {
  Start start = shell("trap '' USR1; echo ready; sleep 0.2; echo done");
  start.meanwhile = [](int pid) { kill(pid, SIGUSR1); };
  EXPECT_EQ(run(start).out, "ready\ndone\n");
}

// The launcher ignores the signal of `ulimit -f` for itself alone.
TEST_F(Launcher, TheProgramHasTheSignalOfTheFileLimitAsItWasSet) {
  const std::string script = "grep SigIgn /proc/$$/status";
  const std::string plain = run({{"/bin/sh", "-c", script}}).out;
  ASSERT_NE(plain, "");
  EXPECT_EQ(run(shell(script)).out, plain);
  std::string launched;
  for (const std::string& word : shell(script).arguments) launched += "'" + word + "' ";
  const std::string ignored = run({{"/bin/sh", "-c", "trap '' XFSZ; " + script}}).out;
  EXPECT_NE(ignored, plain);
  EXPECT_EQ(run({{"/bin/sh", "-c", "trap '' XFSZ; " + launched}, {{"TMPDIR", path("tmp")}}}).out, ignored);
}

TEST_F(Launcher, StopAndContinueAreFollowed) {
  Start start = shell("echo ready; sleep 0.05; kill -STOP $$; echo went on");
  start.meanwhile = [](int pid) {
    int status = 0;
    waitpid(pid, &status, WUNTRACED);
    EXPECT_TRUE(WIFSTOPPED(status));
    kill(pid, SIGCONT);
  };
  const Finished finished = run(start);
  EXPECT_EQ(finished.out, "ready\nwent on\n");
  EXPECT_EQ(finished.exit_code, 0);
}

TEST_F(Launcher, AFolderIsNoProgram) {
  const Finished finished = reprise({"run", "--device", "sim", "--budget", "1G", "--", path("tmp")});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.err, "reprise: " + path("tmp") + ": a folder, not a program; give the program's file\n");
  EXPECT_EQ(reprise({"run", "--device", "sim", "--budget", "1G", "--", "."}).err,
            "reprise: .: a folder, not a program; give the program's file\n");
}

// The helper that removes the temporary folder may be killed, as by a system that is out of memory.
TEST_F(Launcher, TheProgramsExitCodeDoesNotDependOnItsHelper) {
  // The parent of a process is the fourth word of its stat.
  const std::string kill_helpers =
      "for p in /proc/[0-9]*; do set -- $(cat $p/stat 2>/dev/null); if [ \"$4\" = $PPID ] && [ \"$1\" != $$ ]; then "
      "kill -9 $1; fi; done; exit 7";
  const Finished finished =
      reprise({"run", "--budget", "1G", "-o", path("tmp/r.html"), "--", "/bin/sh", "-c", kill_helpers});
  EXPECT_EQ(finished.signal, 0) << finished.err;
  EXPECT_EQ(finished.exit_code, 7) << finished.err;
}

// Arguments that look like ours are not ours behind "--".
TEST_F(Launcher, ArgumentsArePassedAsTheyAre) {
  const Finished finished =
      reprise({"run", "--budget", "1G", "-o", path("tmp/r.html"), "--", "/bin/sh", "-c",
               "for a in \"$@\"; do echo \"<$a>\"; done", "sh", "--budget", "a b", "", "--", "*"});
  EXPECT_EQ(finished.out, "<--budget>\n<a b>\n<>\n<-->\n<*>\n");
}

TEST_F(Launcher, TheEnvironmentIsWhatTheShimReads) {
  Start start = shell(
      "echo $LD_PRELOAD; echo $REPRISE_BUDGET $REPRISE_POLICY $REPRISE_HOST_MEMORY; echo $REPRISE_PLANNER; echo "
      "$REPRISE_DRIVER; echo $LD_LIBRARY_PATH; echo $PYTORCH_CUDA_ALLOC_CONF $PYTORCH_ALLOC_CONF",
      {"run", "--device", "sim", "--budget", "1.5GiB", "--policy", "lru", "--host-memory", "25%"});
  start.environment["LD_PRELOAD"] = path("lib/sim/libcuda.so.1");  // something of the user's own
  start.environment["LD_LIBRARY_PATH"] = "/somewhere";
  const Finished finished = run(start);
  EXPECT_EQ(finished.out, path("lib/reprise/libreprise.so") + ":" + path("lib/sim/libcuda.so.1") + "\n" +
                              "1610612736 lru 25%\n" + path("bin/reprise") + "\n" + path("lib/sim/libcuda.so.1") +
                              "\n" + path("lib/sim") + ":/somewhere\n" +
                              "backend:cudaMallocAsync backend:cudaMallocAsync\n");
}

TEST_F(Launcher, AFileThatAVariableNamesInVainIsTold) {
  Start start = shell("echo $REPRISE_PLANNER", {"run", "--device", "sim", "--budget", "1G", "--policy", "lru"});
  start.environment["REPRISE_PLANNER"] = "/opt/other/reprise";
  start.environment["REPRISE_DRIVER"] = path("lib/sim/libcuda.so.1");  // what the command sets, too
  start.environment["REPRISE_POLICY"] = "belady";                      // an option stands before it: no surprise
  const Finished finished = run(start);
  EXPECT_EQ(finished.out, path("bin/reprise") + "\n");
  EXPECT_TRUE(has(finished.err, "REPRISE_PLANNER=/opt/other/reprise has no effect here: the command sets it to " +
                                    path("bin/reprise")));
  EXPECT_FALSE(has(finished.err, "REPRISE_DRIVER"));
  EXPECT_FALSE(has(finished.err, "REPRISE_POLICY"));
}

TEST_F(Launcher, AnAllocatorThatTheUserChoseIsKept) {
  Start start = shell("echo $PYTORCH_CUDA_ALLOC_CONF / $PYTORCH_ALLOC_CONF");
  start.environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:False";
  const Finished finished = run(start);
  EXPECT_EQ(finished.out, "expandable_segments:False /\n");
  EXPECT_TRUE(has(finished.err, "PYTORCH_CUDA_ALLOC_CONF"));
}

// On the simulated device NVIDIA's libraries, which frameworks bring along, must find ours before them.
TEST_F(Launcher, AFrameworkFindsOurLibrariesFirstOnTheSimulatedDevice) {
  const std::string libraries[] = {"libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcupti.so.13"};
  for (const auto& library : libraries) std::filesystem::copy_file(REPRISE_EMPTY_LIBRARY, path("lib/sim/" + library));
  const std::string shim = path("lib/reprise/libreprise.so");
  std::string all = shim;
  for (const auto& library : libraries) all += ":" + path("lib/sim/" + library);
  const auto preloaded = [&](const Words& options) {
    return run(with(options, "echo $LD_PRELOAD / $PYTORCH_ALLOC_CONF / $XLA_PYTHON_CLIENT_ALLOCATOR")).out;
  };
  const std::string torch = "backend:cudaMallocAsync";
  EXPECT_EQ(preloaded({"--device", "sim"}), all + " / " + torch + " / cuda_async\n");
  EXPECT_EQ(preloaded({"--device", "sim", "--framework", "torch"}), all + " / " + torch + " /\n");
  EXPECT_EQ(preloaded({"--device", "sim", "--framework", "jax"}), all + " / / cuda_async\n");
  EXPECT_EQ(preloaded({"--device", "sim", "--framework", "none"}), shim + " / /\n");
  EXPECT_EQ(preloaded({"--framework", "torch"}), shim + " / " + torch + " /\n");
}

TEST_F(Launcher, AFrameworkThatWasNamedNeedsItsLibraries) {
  expect_refused(run(with({"--device", "sim", "--framework", "torch"}, "true")), 1, "tools/setup --torch");
  well(run(with({"--device", "sim"}, "true")));
  well(run(with({"--framework", "torch"}, "true")));
  expect_refused(run(with({"--framework", "cupy"}, "true")), 2, "--framework");
}

TEST_F(Launcher, WhatTheUserSetInVainIsNamed) {
  Start start = shell("true");
  start.environment.merge(
      std::map<std::string, std::string>{{"LD_PRELOAD", path("lib/sim/libcuda.so.1") + " " + path("tmp/libreprise.so")},
                                         {"XLA_PYTHON_CLIENT_ALLOCATOR", "bfc"},
                                         {"XLA_PYTHON_CLIENT_PREALLOCATE", "0"},
                                         {"PYTORCH_ALLOC_CONF", "max_split_size_mb:64,backend:cudaMallocAsync"}});
  std::filesystem::copy_file(REPRISE_EMPTY_LIBRARY, path("tmp/libreprise.so"));
  const std::string said = run(start).err;
  EXPECT_TRUE(has(said, "XLA_PYTHON_CLIENT_ALLOCATOR=bfc is kept as you set it"));
  EXPECT_TRUE(has(said, "LD_PRELOAD: " + path("tmp/libreprise.so") + " stands behind"));
  EXPECT_FALSE(has(said, "PREALLOCATE"));
  EXPECT_FALSE(has(said, "PYTORCH"));
}

TEST_F(Launcher, TheReportIsMadeFromWhatTheProgramLeft) {
  write("run.log", sample_run_log());
  const Finished finished = run(shell("cp " + path("run.log") + " $REPRISE_RUN_LOG; exit 3"));
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_TRUE(has(finished.err, "2 of 3 iterations planned"));
  EXPECT_TRUE(has(read(path("tmp/report.html")), "The command that started it ended with exit code 3"));
  EXPECT_TRUE(std::filesystem::exists(path("tmp/report.html")));
}

TEST_F(Launcher, NothingIsLeftBehindUnlessKept) {
  const std::string script = "touch $REPRISE_TRACE";
  well(run(shell(script)));
  EXPECT_TRUE(std::filesystem::is_empty(path("tmp")));
  well(run(shell(script, {"run", "--budget", "1GiB", "--keep"})));
  EXPECT_FALSE(std::filesystem::is_empty(path("tmp")));
}

TEST_F(Launcher, RecordTellsWhenThereWasNothingToRecord) {
  EXPECT_TRUE(has(well(reprise({"record", "-o", path("tmp/a.trace"), "--", "/bin/true"})).err, "nothing was recorded"));
}

}  // namespace
}  // namespace reprise::tools::test
