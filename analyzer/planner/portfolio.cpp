#include "analyzer/planner/portfolio.h"

#include <algorithm>
#include <utility>

#include "analyzer/base/parallel.h"
#include "analyzer/planner/home_search.h"
#include "analyzer/schedule/local_search.h"

namespace reprise::analyzer {
namespace {

// Effective budgets: with a few chunks to spare, every tensor finds a home.
constexpr double kFractions[] = {1.0, 0.98, 0.96, 0.94, 0.90, 0.85, 0.80, 0.70, 0.60, 0.50, 0.0};
constexpr HomeOrder kOrders[] = {HomeOrder::longest_first, HomeOrder::returning_first, HomeOrder::persistent_first};
constexpr size_t kEnoughPerPolicy = 3;  // candidates with homes for everything
// Effort: ops that are simulated in all candidates together. The larger a graph is, the fewer candidates it gets.
constexpr uint64_t kMostOpsTried = 200'000;
constexpr size_t kMostPolicies = 5;  // that are tried with homes, the most promising ones
// A graph with more ops is planned in haste, by policies whose time grows like n log n.
constexpr uint32_t kLargeGraph = 20'000;
constexpr double kHastyFractions[] = {0.99, 0.94, 0.85};
// Search: with which budgets, and how many ops are played for each; of graphs of which size.
constexpr double kSearchedFractions[] = {1.0, 0.995, 0.99, 0.98, 0.96, 0.94};
constexpr uint64_t kPlayedOps = 1'000'000;
constexpr uint32_t kMostSearched = 5'000;
constexpr uint64_t kHomeOps = 200'000;  // for homes by trial, and how many trials at most
constexpr uint64_t kMostHomes = 400;
constexpr uint32_t kPlacements = 4;  // of the best schedule, each by the times of the one before
// Schedules that are slower by this part when they are played are not placed: to play is not quite to simulate.
constexpr uint64_t kRivalPart = 8;

std::vector<const Policy*> quick_ones(const std::vector<const Policy*>& policies) {
  std::vector<const Policy*> quick;
  for (const Policy* policy : {&disco_policy(), &link_aware_policy(), &lru_policy()}) {
    if (std::find(policies.begin(), policies.end(), policy) != policies.end()) quick.push_back(policy);
  }
  return quick.empty() ? policies : quick;
}

std::vector<Recipe> in_each_order(Recipe recipe) {
  std::vector<Recipe> recipes;
  for (const HomeOrder order : kOrders) {
    recipe.order = order;
    recipes.push_back(recipe);
  }
  return recipes;
}

// What will be tried next, from one capacity on, and worth making ahead: a capacity for every two processors. Not more,
// for what is found may make the rest needless.
std::vector<Recipe> next_ones(Recipe recipe, const std::vector<uint64_t>& capacities, size_t from) {
  std::vector<Recipe> recipes;
  for (size_t i = from; i < std::min(capacities.size(), from + std::max<size_t>(processors() / 2, 1)); ++i) {
    recipe.capacity = capacities[i];
    for (const Recipe& one : in_each_order(recipe)) recipes.push_back(one);
  }
  return recipes;
}

bool has_homes(const std::optional<PlanCandidate>& one) { return one && one->recipe.mode == PlacementMode::homes; }

// How long the schedule of a recipe in this mode may take when it is played. `best`, `homes`: as in a portfolio.
uint64_t most_ns(PlacementMode mode, const std::optional<PlanCandidate>& best,
                 const std::optional<PlanCandidate>& homes) {
  const auto& rival = mode == PlacementMode::homes && !has_homes(best) ? homes : best;
  if (!rival) return kHoweverLong;
  return rival->prediction.iteration_ns + rival->prediction.iteration_ns / kRivalPart;
}

}  // namespace

void Portfolio::run(const std::vector<const Policy*>& policies, bool searches) {
  if (policies.size() > 1 && workload_.graph.op_count > kLargeGraph) {
    run_in_haste(quick_ones(policies));
    return;
  }
  most_ =
      static_cast<uint32_t>(std::clamp<uint64_t>(kMostOpsTried / std::max(workload_.graph.op_count, 1u), 1, 10'000));
  const bool free_remaps = workload_.machine.remap_ns_per_chunk == 0;
  for (const Policy* policy : free_remaps ? policies : by_promise(policies)) {
    add(*policy);
    if (moves_nothing() || spent()) break;
  }
  if (!best_) {
    for (const Policy* policy : policies) add_remaps(*policy);
  }
  if (!searches || policies.size() < 2) return;
  search();
  place_by_prediction();
}

void Portfolio::add(const Policy& policy) {
  workload_.machine.remap_ns_per_chunk == 0 ? add_remaps(policy) : add_homes(policy);
}

void Portfolio::add_alone(const Policy& policy) {
  tried_here_ = 0;
  found_here_ = false;
  add(policy);
  if (!found_here_) add_remaps(policy);
}

// With all chunks, and, where the schedule that is found has no homes for all, with a few to spare: until what is found
// is no faster, placed as well as can be, than the best plan.
void Portfolio::search() {
  if (!workload_.device_subgraphs.empty() || !best_ || workload_.graph.op_count > kMostSearched) return;
  for (const double fraction : kSearchedFractions) {
    const auto capacity = static_cast<uint64_t>(fraction * static_cast<double>(chunks_));
    if (is_ideal() || capacity < workload_.largest.chunks || search(capacity)) return;
  }
}

// True: there is nothing to be gained from fewer chunks.
bool Portfolio::search(uint64_t capacity) {
  const TaskGraph& graph = workload_.graph;
  const Machine& machine = workload_.machine;
  const auto plays = static_cast<uint32_t>(std::min<uint64_t>(kPlayedOps / graph.op_count, graph.op_count));
  const std::vector<const Policy*>& policies = searched_policies();
  std::vector<Schedule> starts(policies.size());
  in_parallel(starts.size(), [&](size_t i) { starts[i] = policies[i]->schedule({graph, machine, capacity, true}); });
  std::optional<RetimedSchedule> found = search_stalls(graph, machine, starts, capacity, plays);
  if (!found || found->iteration_ns >= best_->prediction.iteration_ns) return true;
  Scheduled scheduled{std::move(found->schedule), {}};
  scheduled.tiers = assign_tiers(graph, machine, scheduled.schedule);
  // What finds no home may lie elsewhere each time, where mapping takes less than the transfers that it spares.
  Recipe recipe{&reprise_policy(), capacity, chunks_, PlacementMode::homes, kOrders[0], true};
  const bool free_remaps = machine.remap_ns_per_chunk == 0;
  if (!free_remaps && try_orders(recipe, scheduled)) return true;
  bool placed = false;
  for (const PlacementMode mode : {PlacementMode::homes_then_stays, PlacementMode::by_begin}) {
    recipe.mode = mode;
    placed = try_recipe(recipe, scheduled) || placed;
  }
  return placed && free_remaps;
}

bool Portfolio::try_orders(Recipe& recipe, const Scheduled& scheduled) {
  if (recipe.mode == PlacementMode::by_begin) return try_recipe(recipe, scheduled);  // chooses no homes
  const std::vector<Recipe> recipes = in_each_order(recipe);
  tried_.make_ahead(recipes, scheduled);
  bool placed = false;
  for (const Recipe& one : recipes) placed = try_recipe(one, scheduled) || placed;
  recipe = recipes.back();
  return placed;
}

// Homes were chosen as if nothing had to be waited for. With the times of the best plan they may be better, and its
// times may be other ones then.
void Portfolio::place_by_prediction() {
  if (workload_.graph.op_count > kMostSearched) return;
  place_by_prediction(best_);
  place_by_prediction(homes_);
}

void Portfolio::place_by_prediction(std::optional<PlanCandidate>& one) {
  for (uint32_t round = 0; round < kPlacements && one && !is_ideal(); ++round) {
    Recipe recipe = one->recipe;
    recipe.start_ns = start_times(workload_.graph, *one);
    const uint64_t before = one->prediction.iteration_ns;
    try_orders(recipe, {one->schedule, one->tiers});
    if (!one || one->prediction.iteration_ns == before) return;
  }
}

void Portfolio::improve_homes() {
  if (!best_ || is_ideal() || !workload_.device_subgraphs.empty() || workload_.graph.op_count > kMostSearched) return;
  const bool homes = has_homes(best_);
  if (!homes && !homes_) return;
  const auto tries = static_cast<uint32_t>(std::min<uint64_t>(kHomeOps / workload_.graph.op_count, kMostHomes));
  count_ += search_homes(workload_.graph, workload_.machine, tries, homes ? *best_ : *homes_);
  if (!homes && is_better(*homes_, *best_)) best_ = std::move(homes_);
}

void Portfolio::run_in_haste(const std::vector<const Policy*>& policies) {
  const bool fits = workload_.graph.peak_chunks <= chunks_;
  for (const double fraction : kHastyFractions) {
    const auto part = static_cast<uint64_t>((fits ? 1.0 : fraction) * static_cast<double>(chunks_));
    const uint64_t capacity = std::max(workload_.largest.chunks, part);
    if (try_recipe({policies[0], capacity, chunks_, PlacementMode::homes_then_stays, kOrders[0], true})) return;
  }
  for (const Policy* policy : policies) {
    add_remaps(*policy);
    if (best_) return;
  }
}

void Portfolio::add_best_of(Portfolio&& other) {
  count_ += other.count_;
  if (other.best_) keep(std::move(other.best_));
  if (other.homes_) keep(std::move(other.homes_));
}

// A policy that is asked for alone is taken as it is.
std::vector<const Policy*> Portfolio::by_promise(const std::vector<const Policy*>& policies) {
  // Of a small graph there is time for everything, of a large one for little.
  if (policies.size() < 2 || most_ < 2 * policies.size() || most_ > 64 * policies.size()) return policies;
  std::vector<std::pair<uint64_t, const Policy*>> ranked(policies.size());
  Machine machine = workload_.machine;
  machine.remap_ns_per_chunk = 0;
  in_parallel(policies.size(), [&](size_t i) {
    const auto candidate = make_candidate(workload_.graph, workload_.device_subgraphs, machine,
                                          {policies[i], chunks_, chunks_, PlacementMode::by_begin, kOrders[0], true});
    const bool good = candidate && candidate->tiers.fits;
    ranked[i] = {good ? candidate->prediction.iteration_ns : ~uint64_t{0}, policies[i]};
  });
  count_ += static_cast<uint32_t>(policies.size());
  tried_here_ += static_cast<uint32_t>(policies.size());
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  ranked.resize(std::min(ranked.size(), kMostPolicies));
  std::vector<const Policy*> order;
  order.reserve(ranked.size());
  for (const auto& [time, policy] : ranked) order.push_back(policy);
  return order;
}

// Plans without remaps: first with tensors carried over the start of the iteration, then without.
void Portfolio::add_homes(const Policy& policy) {
  std::vector<uint64_t> capacities;
  for (const double fraction : kFractions) {
    const auto part = static_cast<uint64_t>(fraction * static_cast<double>(chunks_));
    const uint64_t capacity = std::max(workload_.largest.chunks, part);
    if (capacities.empty() || capacity != capacities.back()) capacities.push_back(capacity);
  }
  for (const bool carry : {true, false}) {
    size_t found = 0;
    size_t ahead = 0;
    for (size_t i = 0; i < capacities.size(); ++i) {
      const Recipe any{&policy, capacities[i], chunks_, PlacementMode::homes, kOrders[0], carry};
      if (i == ahead) {
        std::vector<Recipe> next = next_ones(any, capacities, i);
        ahead += next.size() / std::size(kOrders);
        if (found_here_ && most_ > tried_here_) next.resize(std::min<size_t>(next.size(), most_ - tried_here_));
        tried_.make_ahead(next, most_ns(any.mode, best_, homes_));
      }
      bool placed = false;
      for (const Recipe& recipe : in_each_order(any)) {
        placed = try_recipe(recipe) || placed;
        if (moves_nothing() || spent()) return;
      }
      if (placed && ++found >= kEnoughPerPolicy) return;
    }
    if (found > 0) return;
  }
}

// Plans with remaps: a stay may lie anywhere. Where mapping costs something, the first form that has room; the last one
// cannot fail.
void Portfolio::add_remaps(const Policy& policy) {
  const bool free_remaps = workload_.machine.remap_ns_per_chunk == 0;
  const HomeOrder order = HomeOrder::longest_first;
  bool placed = try_recipe({&policy, chunks_, chunks_, PlacementMode::homes_then_stays, order, true});
  if (placed && (!free_remaps || moves_nothing() || spent())) return;
  placed = try_recipe({&policy, chunks_, chunks_, PlacementMode::by_begin, order, true}) || placed;
  if (placed && (!free_remaps || spent())) return;
  try_recipe({&policy, chunks_, chunks_, PlacementMode::by_begin, order, false});
  // Stays over the iteration's start may find no chunks where all are taken: with a few to spare they do.
  size_t found = placed ? kEnoughPerPolicy : 0;
  for (const double fraction : kFractions) {
    if (found == kEnoughPerPolicy || spent()) return;
    const auto capacity = static_cast<uint64_t>(fraction * static_cast<double>(chunks_));
    if (capacity == chunks_ || capacity < workload_.largest.chunks) continue;
    if (try_recipe({&policy, capacity, chunks_, PlacementMode::by_begin, order, true})) ++found;
  }
}

bool Portfolio::is_ideal() const {
  return best_ && best_->prediction.iteration_ns <= workload_.graph.compute_ns + workload_.graph.recompute_ns;
}

bool Portfolio::moves_nothing() const {
  return best_ && best_->schedule.offload_bytes == 0 && best_->schedule.reload_bytes == 0;
}

// Where the schedule is slower than the plan that is to be beaten, played with as many chunks as there are and wherever
// they lie, it need not be placed. With fewer chunks it would not be faster, so it counts as placed.
bool Portfolio::try_recipe(const Recipe& recipe) {
  const std::optional<bool> placed = tried_.placed(recipe);
  if (!placed) {
    const Scheduled& scheduled = tried_.scheduled(recipe);
    const uint64_t most = most_ns(recipe.mode, best_, homes_);
    if (most == kHoweverLong || tried_.played_ns() <= most) return try_recipe(recipe, scheduled);
  }
  ++count_;
  ++tried_here_;
  found_here_ = found_here_ || placed.value_or(false);
  return placed.value_or(true);
}

bool Portfolio::try_recipe(const Recipe& recipe, const Scheduled& scheduled) {
  ++count_;
  ++tried_here_;
  const bool placed = tried_.place_once(recipe, scheduled, [&] {
    std::optional<PlanCandidate> candidate = tried_.candidate(recipe, scheduled);
    if (candidate && !candidate->tiers.fits) tiers_fit_ = false;
    if (!candidate || !candidate->tiers.fits) return false;
    keep(std::move(candidate));
    return true;
  });
  found_here_ = found_here_ || placed;
  return placed;
}

// The best one with homes for all is kept, too: those can be improved.
void Portfolio::keep(std::optional<PlanCandidate> candidate) {
  if (!best_ || is_better(*candidate, *best_)) {
    if (has_homes(best_)) homes_ = std::move(best_);
    best_ = std::move(candidate);
    if (has_homes(best_)) homes_.reset();
  } else if (!has_homes(best_) && has_homes(candidate) && (!homes_ || is_better(*candidate, *homes_))) {
    homes_ = std::move(candidate);
  }
}

}  // namespace reprise::analyzer
