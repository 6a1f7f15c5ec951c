// The memory of the device over time.
sections.iteration_memory = () => {
  if (!data.iteration_memory) return;
  memoryChart(section("iteration-memory", "Memory during one iteration", data.iteration_memory.about), data.iteration_memory);
};

sections.run_memory = () => {
  if (data.run_memory) memoryChart(section("run-memory", "Memory during the whole run", ""), data.run_memory);
};
