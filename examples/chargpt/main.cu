// Trains a small character-level GPT on one GPU: ordinary CUDA C++, every tensor an allocation of its own.
#include <chrono>
#include <filesystem>

#include "trainer.cuh"

static std::string text_path(const Options& options) {
  if (!options.text.empty()) return options.text;
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename("chargpt.txt");  // whatever PATH led here
}

static int run(const Options& options, const Text& text) {
  Trainer trainer(options, text);
  if (options.check_gradients) {
    const double worst = trainer.check_gradients();
    std::printf("largest relative difference %.4g\n", worst);
    return worst < 0.02 ? 0 : 1;
  }
  const auto start = std::chrono::steady_clock::now();
  try {
    trainer.train();
  } catch (const Stopped&) {
    std::printf("stopped after %ld kernel launches\n", trainer.device().launches());
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("weights %016llx\n", static_cast<unsigned long long>(trainer.checksum()));
  std::printf("peak of tensors %zu bytes\n", trainer.device().peak_bytes());
  if (options.time) std::fprintf(stderr, "chargpt: %.4f s a step\n", seconds.count() / std::max(options.steps, 1));
  return 0;
}

int main(int count, char** arguments) {
  const Options options = parse_options(count, arguments);
  const Text text(text_path(options), options.context);
  return run(options, text);
}
