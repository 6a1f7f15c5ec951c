// The command line of the trainer.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>

enum class FreeOrder { last_use, reversed, shuffled };

struct Options {
  int layers = 4;
  int width = 128;
  int heads = 4;
  int context = 64;
  int batch = 8;
  int steps = 20;
  unsigned seed = 1;
  float learning_rate = 1e-3f;
  std::string text;  // empty: chargpt.txt beside the program
  int eval_every = 0;
  long stop_after = 0;  // kernel launches; 0: never
  FreeOrder free_order = FreeOrder::last_use;
  bool async_memory = false;
  int print_every = 1;
  bool check_gradients = false;
  bool time = false;
};

[[noreturn]] inline void fail(const std::string& message) {
  std::fprintf(stderr, "chargpt: %s\n", message.c_str());
  std::exit(2);
}

[[noreturn]] inline void print_help() {
  std::puts(
      "chargpt: trains a character-level GPT on a text.\n"
      "  --layers N --width N --heads N --context N --batch N   the model: 4 128 4 64 8\n"
      "  --steps N --lr X --seed N --print-every N              the training: 20 0.001 1 1\n"
      "  --text FILE                                            default: chargpt.txt beside the program\n"
      "  --eval-every N                                         an evaluation after every N steps\n"
      "  --stop-after N                                         ends after N kernel launches, wherever that is\n"
      "  --free-order last-use|reversed|shuffled                when the backward pass frees what it has used\n"
      "  --async-memory                                         cudaMallocAsync and cudaFreeAsync\n"
      "  --check-gradients                                      compares with finite differences, does not train\n"
      "  --time                                                 seconds a step, on stderr");
  std::exit(0);
}

inline long parse_number(const std::string& name, const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != 0 || value < 0 || value > 1000000000) fail(name + " needs a number, not " + text);
  return value;
}

inline FreeOrder parse_order(const std::string& text) {
  if (text == "last-use") return FreeOrder::last_use;
  if (text == "reversed") return FreeOrder::reversed;
  if (text == "shuffled") return FreeOrder::shuffled;
  fail("--free-order takes last-use, reversed or shuffled, not " + text);
}

inline bool parse_flag(const std::string& name, Options& options) {
  if (name == "--help") print_help();
  if (name == "--check-gradients") return options.check_gradients = true;
  if (name == "--async-memory") return options.async_memory = true;
  if (name == "--time") return options.time = true;
  return false;
}

inline void parse_value(const std::string& name, const char* value, Options& options) {
  const auto number = [&] { return static_cast<int>(parse_number(name, value)); };
  if (name == "--layers")
    options.layers = number();
  else if (name == "--width")
    options.width = number();
  else if (name == "--heads")
    options.heads = number();
  else if (name == "--context")
    options.context = number();
  else if (name == "--batch")
    options.batch = number();
  else if (name == "--steps")
    options.steps = number();
  else if (name == "--seed")
    options.seed = static_cast<unsigned>(number());
  else if (name == "--lr")
    options.learning_rate = std::strtof(value, nullptr);
  else if (name == "--text")
    options.text = value;
  else if (name == "--eval-every")
    options.eval_every = number();
  else if (name == "--stop-after")
    options.stop_after = parse_number(name, value);
  else if (name == "--free-order")
    options.free_order = parse_order(value);
  else if (name == "--print-every")
    options.print_every = number();
  else
    fail("unknown option " + name + ", see --help");
}

// Ends the program with one line when the options make no model.
inline Options parse_options(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (parse_flag(name, options)) continue;
    if (i + 1 == count) fail(name + " needs a value, or is unknown: see --help");
    parse_value(name, arguments[++i], options);
  }
  if (options.layers < 1 || options.batch < 1 || options.heads < 1) fail("layers, heads and batch must be at least 1");
  if (options.context < 16 || options.context % 16 != 0) fail("--context must be a multiple of 16");
  if (options.width < 16 || options.width % (16 * options.heads) != 0) fail("--width must be a multiple of 16 x heads");
  if (options.print_every < 1) options.print_every = 1;
  return options;
}
