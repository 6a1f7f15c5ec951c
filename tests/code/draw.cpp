#include "tests/code/draw.h"

#include <algorithm>
#include <cstring>

namespace reprise::sass {
namespace {

constexpr size_t kHidden = 4;
constexpr uint32_t kNumbers[] = {0, 1, 1, 2, 2, 3, 4, 4, 5, 7, 8, 8, 12, 16, 17, 31, 32, 33, 40, 64, 64, 100, 128};
constexpr uint32_t kReals[] = {0x3f800000, 0x3f000000, 0xbf800000, 0x40490fdb};
constexpr Filling kFillings[] = {Filling::zeros,   Filling::small32,  Filling::small32,  Filling::small64,
                                 Filling::small64, Filling::reals,    Filling::reals,    Filling::doubles,
                                 Filling::bytes,   Filling::pointers, Filling::pointers, Filling::pointers_or_null};

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : random_(seed) {}

  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }
  template <typename T, size_t N>
  T one(const T (&of)[N]) {
    return of[below(N)];
  }
  uint32_t number() { return below(10) == 0 ? one(kReals) : one(kNumbers); }

  Dimensions dimensions(uint32_t most_threads) {
    constexpr uint32_t kThreads[] = {32, 64, 64, 96, 128, 128, 256, 33, 16};
    Dimensions d;
    d.grid[0] = std::max(1U, below(4));
    if (below(4) == 0) d.grid[1] = 1 + below(2);
    // What is compiled for few threads mostly needs exactly as many.
    d.block[0] = most_threads <= 512 && below(4) != 0 ? most_threads : std::min(one(kThreads), most_threads);
    if (below(4) == 0 && d.block[0] >= 64) d.block[0] /= 4, d.block[1] = 2 + below(3);
    return d;
  }

  // Numbers of 32 bits, of 64 bits, or either.
  void fill(std::vector<uint8_t>& bytes, const images::ParameterImage& parameter, uint32_t style) {
    for (uint32_t at = 0; at < parameter.bytes;) {
      const bool eight = parameter.bytes - at >= 8 && (parameter.offset + at) % 8 == 0;
      const bool two = style == 0 || (style == 2 && below(2) == 0);
      uint64_t value = number();
      if (eight && two) value |= uint64_t{number()} << 32;
      const uint32_t step = eight ? 8 : std::min(4U, parameter.bytes - at);
      if (step < 4) value &= 1;
      std::memcpy(bytes.data() + parameter.offset + at, &value, step);
      at += step;
    }
  }

 private:
  std::mt19937_64 random_;
};

void follow_truth(Draw& draw, const code::Truth& truth) {
  const std::vector<uint8_t>& given = truth.launch.parameters;
  for (size_t at = 0; at + 16 <= std::min(given.size(), draw.numbers.size() + 15); at += 16) {
    const auto begin = given.begin() + static_cast<std::ptrdiff_t>(at);
    if (std::all_of(begin, begin + 16, [](uint8_t byte) { return byte == 0; })) continue;
    std::copy_n(begin, std::min<size_t>(16, draw.numbers.size() - at),
                draw.numbers.begin() + static_cast<std::ptrdiff_t>(at));
  }
  for (const uint32_t word : truth.launch.null) {
    draw.handles.erase(word);
    if (word + 8 <= draw.numbers.size()) std::memset(draw.numbers.data() + word, 0, 8);
  }
  if (!given.empty()) draw.dimensions.grid[0] = truth.launch.grid[0], draw.dimensions.grid[1] = 1;
}

uint64_t word_at(const std::vector<uint8_t>& bytes, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, 8);
  return word;
}

}  // namespace

uint32_t parameter_bytes(const images::KernelCode& kernel) {
  uint32_t bytes = 0;
  for (const auto& parameter : kernel.parameters) bytes = std::max(bytes, parameter.offset + parameter.bytes);
  return bytes;
}

Draw draw_launch(const images::KernelCode& kernel, const std::set<uint32_t>& pointers, uint32_t most_threads,
                 uint64_t seed, const code::Truth* truth) {
  Drawer drawer(seed);
  Draw draw;
  draw.seed = seed;
  draw.dimensions = drawer.dimensions(most_threads);
  draw.numbers.resize(parameter_bytes(kernel));
  const uint32_t style = drawer.below(3);
  for (const auto& parameter : kernel.parameters) drawer.fill(draw.numbers, parameter, style);
  for (const auto& parameter : kernel.parameters) {
    const bool plain = parameter.bytes == 8 && parameter.offset % 8 == 0 && !pointers.contains(parameter.offset);
    if (plain && drawer.below(8) == 0) draw.handles[parameter.offset] = 3 * drawer.below(4);
  }
  for (const uint32_t word : pointers) {
    if (word + 8 > draw.numbers.size()) continue;
    const bool null = truth == nullptr && drawer.below(20) == 0;
    const bool shared = !draw.fillings.empty() && drawer.below(12) == 0;
    std::memset(draw.numbers.data() + word, 0, 8);
    if (null) continue;
    if (!shared) draw.fillings.push_back(drawer.one(kFillings));
    draw.pointers[word] = shared ? drawer.below(static_cast<uint32_t>(draw.fillings.size())) : draw.fillings.size() - 1;
    draw.steps[word] = drawer.below(3) == 0 ? 16 * drawer.below(9) : 0;
  }
  if (truth != nullptr) follow_truth(draw, *truth);
  return draw;
}

Scene make_scene(const Draw& draw, const Surroundings& surroundings, uint64_t places) {
  Scene scene{World(draw.seed, places), draw.numbers, 0, 0, 0};
  for (const Filling filling : draw.fillings) scene.world.add(filling);
  scene.of_module = draw.fillings.size();
  const Filling of_variables = kFillings[draw.seed % std::size(kFillings)];
  for (const bool initialised : {false, true}) {
    Object& object = scene.world.object(scene.world.add(of_variables));
    object.of_module = true;
    if (initialised) object.initial = surroundings.initial;
  }
  scene.constants = scene.world.add(of_variables);
  scene.hidden = scene.constants + 1;
  for (size_t n = 0; n < kHidden; ++n) {
    scene.world.add(kFillings[mixed(draw.seed, n) % std::size(kFillings)]);
  }
  scene.world.set_hidden(scene.hidden);
  for (const auto& [word, shift] : draw.handles) {
    const uint64_t handle = scene.world.object(scene.hidden).base >> shift;
    std::memcpy(scene.parameters.data() + word, &handle, 8);
  }
  for (const auto& [word, object] : draw.pointers) {
    const uint64_t address = scene.world.object(object).base + draw.steps.at(word);
    std::memcpy(scene.parameters.data() + word, &address, 8);
  }
  return scene;
}

void fill_banks(Program& program, const Draw& draw, Scene& scene, const Surroundings& surroundings, uint32_t at) {
  const auto put = [](std::vector<uint8_t>& bank, size_t place, auto value) {
    if (bank.size() < place + sizeof value) bank.resize(place + sizeof value);
    std::memcpy(bank.data() + place, &value, sizeof value);
  };
  std::vector<uint8_t>& launch = program.banks[0];
  launch.assign(at + scene.parameters.size() + 264, 0);
  for (size_t n = 0; n < 3; ++n) {
    put(launch, 4 * n, draw.dimensions.block[n]);
    put(launch, 12 + 4 * n, draw.dimensions.grid[n]);
  }
  put(launch, 0x18, kSharedWindow);
  put(launch, 0x20, kLocalWindow);
  put(launch, 0x28, kStackBytes);
  std::copy(scene.parameters.begin(), scene.parameters.end(), launch.begin() + at);
  program.banks[2] = surroundings.literals;
  std::vector<uint8_t>& constants = program.banks[3] = surroundings.constants;
  const bool given = std::any_of(constants.begin(), constants.end(), [](uint8_t byte) { return byte != 0; });
  for (size_t place = 0; !given && place + 8 <= constants.size(); place += 8) {
    scene.world.read(scene.world.object(scene.constants).base + place, constants.data() + place, 8);
  }
  program.banks[4].assign(surroundings.address_bytes, 0);
  for (const AddressEntry& entry : surroundings.addresses) {
    put(program.banks[4], entry.offset,
        scene.world.object(scene.of_module + (entry.initialised ? 1 : 0)).base + entry.place);
  }
}

code::LaunchWords words_of(const Draw& draw, const Scene& scene) {
  code::LaunchWords words;
  words.parameters = scene.parameters;
  std::copy(std::begin(draw.dimensions.grid), std::end(draw.dimensions.grid), std::begin(words.grid));
  for (uint32_t at = 0; at + 8 <= scene.parameters.size(); at += 4) {
    const uint64_t word = word_at(scene.parameters, at);
    if (scene.world.find(word)) words.live.insert(at);
    if (word == 0 && at % 8 == 0) words.null.insert(at);
  }
  return words;
}

}  // namespace reprise::sass
