// hidden_program CUBIN SEED [--NAME VALUE]...: a random program, without races, whose kernels reach memory through
// pointers in tables (recipe.h says what may vary). It prints a digest of its memory behind each iteration and at the
// end, and the most device memory that it had on stderr. Knows nothing of Reprise.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>

#include "tests/e2e/hidden/tables.h"

namespace hidden {

class Program {
 public:
  Program(const std::string& cubin, const Recipe& recipe)
      : recipe_(recipe), device_(cubin, recipe.streams, recipe.serial) {
    std::mt19937 random(static_cast<unsigned>(recipe.seed));
    for (const size_t bytes : recipe.weights) {
      std::vector<uint32_t> content(bytes / 4);
      for (auto& word : content) word = static_cast<uint32_t>(random());
      weights_.push_back(device_.allocate(bytes));
      CHECK(cuMemcpyHtoD(weights_.back().address, content.data(), bytes));
      weights_.back().last_stream = 0;
    }
    counter_ = device_.zeros(256, 0);
    digests_ = device_.zeros(256, 0);
    for (const Group& group : recipe.groups) {
      tables_.push_back(std::make_unique<TableAtWork>(&device_, group, &weights_, &counter_, recipe.seed));
    }
  }

  void run() {
    for (int i = 0; i < recipe_.iterations; ++i) {
      iterate(i);
      program::print("iteration " + std::to_string(i), digest());
      std::fflush(stdout);
    }
    device_.synchronize();
    uint64_t hash = 0;
    for (Tensor& weight : weights_) hash = with(hash, weight);
    for (auto& table : tables_) {
      for (Tensor* target : table->targets()) hash = with(hash, *target);
    }
    program::print("end", hash);
    std::fprintf(stderr, "peak: %zu\n", device_.peak());
  }

 private:
  using Random = std::mt19937;

  int any_stream(Random& random) { return static_cast<int>(random() % static_cast<unsigned>(recipe_.streams)); }

  Tensor& any_tensor(Random& random) {
    const size_t index = random() % (weights_.size() + transient_.size());
    return index < weights_.size() ? weights_[index] : transient_[index - weights_.size()];
  }

  // Iterations of a regular program make the same calls in the same order; only salts differ.
  void iterate(int iteration) {
    const bool odd = recipe_.irregular == 2 || (recipe_.irregular == 1 && iteration % 4 == 3);
    Random random(static_cast<unsigned>(recipe_.seed * 31 + (odd ? static_cast<uint64_t>(iteration) * 7919 : 0)));
    device_.use(&counter_, 0);
    const auto salt = static_cast<uint32_t>(iteration) * 1000003u;
    const int ops = recipe_.ops + (odd ? static_cast<int>(random() % 9) : 0);
    const int begin = ops / 4;
    const int end = ops - ops / 4;
    for (int i = 0; i < ops; ++i) {
      if (i == begin) {
        for (auto& table : tables_) prepare(*table, random, iteration, salt);
      }
      operate(random, salt + static_cast<uint32_t>(i), i >= begin && i < end, iteration);
      if (i == end - 1) finish(random, salt, iteration);
    }
    while (!transient_.empty()) free_one(transient_.size() - 1);
    device_.use(&counter_, 0);
    device_.launch("count_up", 1, 0, counter_.address);
  }

  void prepare(TableAtWork& table, Random& random, int iteration, uint32_t salt) {
    const int stream = any_stream(random);
    if (table.transient()) table.allocate_targets(stream, recipe_.freeing);
    if (table.due(iteration)) table.build(stream, iteration);
    if (table.transient() && table.group().filled_hidden) table.fill(stream, salt);
    follow(table, random, salt, true, iteration);
  }

  void finish(Random& random, uint32_t salt, int iteration) {
    for (auto& table : tables_) {
      follow(*table, random, salt + 1, false, iteration);
      follow(*table, random, salt + 2, true, iteration);
      if (table->transient()) table->free_targets(recipe_.freeing);
    }
  }

  // Draws the same numbers whether anything is launched or not.
  void follow(TableAtWork& table, Random& random, uint32_t salt, bool gathers, int iteration) {
    const int stream = any_stream(random);
    Tensor& other = any_tensor(random);
    if (!table.group().launched_always && !table.followed(iteration)) return;
    table.use(stream);
    device_.use(&other, stream);
    const uint32_t words = std::min(table.words(), static_cast<uint32_t>(other.bytes / 4));
    device_.launch(gathers ? "gather" : "scatter", blocks_for(words), stream, table.table(), table.when(),
                   other.address, words, salt);
  }

  void operate(Random& random, uint32_t salt, bool tables_are_built, int iteration) {
    const unsigned kind = random() % 10;
    if (kind <= 1) {
      const size_t bytes = (1 + random() % (recipe_.chunk / 2)) * 4;
      const int stream = any_stream(random);
      if (transient_.size() >= kTransient) return;
      transient_.push_back(device_.allocate(bytes, stream, recipe_.freeing));
      device_.use(&transient_.back(), stream);
      CHECK(cuMemsetD32Async(transient_.back().address, salt, bytes / 4, device_.stream(stream)));
    } else if (kind == 2) {
      const size_t which = random();
      if (!transient_.empty()) free_one(which % transient_.size());
    } else if (kind == 3) {
      copy(any_tensor(random), any_tensor(random), any_stream(random));
    } else if (kind <= 5) {
      const size_t which = random() % tables_.size();
      const bool gathers = random() % 2 == 0;
      if (tables_are_built) follow(*tables_[which], random, salt, gathers, iteration);
    } else {
      mix(random, salt);
    }
  }

  void copy(Tensor& to, Tensor& from, int stream) {
    if (to.address == from.address) return;
    device_.use(&to, stream);
    device_.use(&from, stream);
    const size_t bytes = std::min(to.bytes, from.bytes) / 8 * 4;
    CHECK(cuMemcpyDtoDAsync(to.address, from.address, bytes, device_.stream(stream)));
  }

  void mix(Random& random, uint32_t salt) {
    const int stream = any_stream(random);
    Tensor& a = any_tensor(random);
    Tensor& b = any_tensor(random);
    Tensor& c = any_tensor(random);
    device_.use(&a, stream);
    device_.use(&b, stream);
    uint32_t words = static_cast<uint32_t>(std::min(a.bytes, b.bytes) / 4);
    if (random() % 2 == 0) {
      device_.launch("mix2", blocks_for(words), stream, a.address, b.address, words, salt);
      return;
    }
    device_.use(&c, stream);
    words = std::min(words, static_cast<uint32_t>(c.bytes / 4));
    device_.launch("mix3", blocks_for(words), stream, a.address, b.address, c.address, words, salt);
  }

  void free_one(size_t index) {
    device_.free(&transient_[index], recipe_.freeing);
    transient_.erase(transient_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  uint64_t with(uint64_t hash, Tensor& tensor) {
    hash = program::hash_of(device_.read(&tensor, recipe_.polled), hash);
    return hash ^ hash >> 31;
  }

  uint64_t digest() {
    uint64_t hash = program::kHashSeed;
    for (Tensor& weight : weights_) hash = with(hash, weight);
    for (auto& table : tables_) {
      if (recipe_.digest == Digest::copies) {
        for (Tensor* target : table->targets()) hash = with(hash, *target);
      } else if (recipe_.digest == Digest::kernel && !table->transient()) {
        table->use(0);
        device_.use(&digests_, 0);
        device_.launch("digest_hidden", table->group().table.count, 0, table->table(), digests_.address,
                       table->words());
        hash = with(hash, digests_);
      }
    }
    return hash;
  }

  static constexpr size_t kTransient = 8;
  Recipe recipe_;
  Device device_;
  std::vector<Tensor> weights_;
  std::vector<Tensor> transient_;
  Tensor counter_;  // of iterations
  Tensor digests_;
  std::vector<std::unique_ptr<TableAtWork>> tables_;
};

}  // namespace hidden

int main(int argc, char** argv) {
  std::vector<std::string> options(argv + std::min(argc, 3), argv + argc);
  const bool described = !options.empty() && options.back() == "--describe";
  if (described) options.pop_back();
  hidden::Recipe recipe;
  if (argc < 3 || options.size() % 2 != 0 ||
      !hidden::make_recipe(std::strtoull(argv[2], nullptr, 10), options, &recipe)) {
    std::fprintf(stderr, "usage: hidden_program CUBIN SEED [--NAME VALUE]... [--describe]\n");
    return 2;
  }
  if (described) hidden::describe(recipe);
  hidden::Program program(argv[1], recipe);
  program.run();
  return 0;
}
