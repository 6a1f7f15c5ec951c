// What a portfolio has tried: the schedules that recipes lead to, and whether there was a place for them. Recipes often
// lead to the same schedule, and policies are tried again one by one: what is known is not done twice. Where the
// machine has several processors, what is likely to be tried next is made ahead, side by side: the portfolio takes it
// in the order in which it would have made it, so that its choice does not depend on their number. Used by
// portfolio.cpp only.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/base/parallel.h"
#include "analyzer/planner/candidate.h"
#include "analyzer/planner/planner.h"
#include "analyzer/schedule/retime.h"
#include "preload/trace/signature.h"

namespace reprise::analyzer {

inline constexpr uint32_t kFewestPlayed = 256;  // smaller graphs are placed as fast as they are played
inline constexpr uint64_t kHoweverLong = ~uint64_t{0};

// The hash of what the policy is asked.
inline uint64_t hash_of_question(const Recipe& recipe) {
  const uint64_t policy = reinterpret_cast<uintptr_t>(recipe.policy);
  return trace::hash_mix(trace::hash_mix(policy, recipe.capacity), recipe.carry_visitors ? 1 : 0);
}

inline uint64_t hash_of_schedule(const Schedule& schedule) {
  uint64_t hash = schedule.stays.size();
  const auto mix = [&](uint64_t high, uint64_t low) { hash = trace::hash_mix(hash, high << 32 | low); };
  for (const Stay& stay : schedule.stays) {
    mix(stay.tensor, stay.begin);
    mix(stay.end, (stay.wraps ? 4 : 0) | (stay.clean_at_start ? 2 : 0) | (stay.not_to_ssd ? 1 : 0));
    mix(static_cast<uint64_t>(stay.arrival) << 8 | static_cast<uint64_t>(stay.departure),
        static_cast<uint64_t>(stay.to) << 8 | static_cast<uint64_t>(stay.from));
    mix(stay.arrives_after, stay.leaves_after);
    hash = trace::hash_mix(hash, stay.fault_ns);
  }
  return hash;
}

inline uint64_t with_placement(uint64_t schedule, const Recipe& recipe) {
  const auto mode = static_cast<uint64_t>(recipe.mode);
  uint64_t hash = trace::hash_mix(schedule, mode << 8 | static_cast<uint64_t>(recipe.order));
  hash = trace::hash_mix(hash, recipe.chunks);
  for (const uint64_t time : recipe.start_ns) hash = trace::hash_mix(hash, time);
  return hash;
}

class Tried {
 public:
  // `chunks` that a plan may use.
  Tried(const Workload& workload, uint64_t chunks) : workload_(workload), chunks_(chunks) {}

  // Was there a place for what the recipe's policy plans? nullopt: it has not been tried.
  std::optional<bool> placed(const Recipe& recipe) const;
  // What the recipe's policy plans, until the next call.
  const Scheduled& scheduled(const Recipe& recipe);
  // What an iteration of that takes when it is played with all chunks, wherever they lie; 0: it cannot be played.
  uint64_t played_ns();

  // A candidate that place_once() asks for.
  std::optional<PlanCandidate> candidate(const Recipe& recipe, const Scheduled& scheduled);
  // `place()` of a schedule, or what it returned for the same one before.
  template <typename Place>
  bool place_once(const Recipe& recipe, const Scheduled& scheduled, Place&& place) {
    const auto [known, is_new] = placed_.try_emplace(hash_of(scheduled.schedule, recipe), false);
    if (is_new) known->second = place();
    return known->second;
  }

  // Makes what is not known of these recipes, on several processors: the schedules of those that differ, and the
  // candidates of schedules that are played within `most_ns`. What was made ahead before is forgotten.
  void make_ahead(const std::vector<Recipe>& recipes, uint64_t most_ns);
  // Likewise, candidates of one schedule.
  void make_ahead(const std::vector<Recipe>& recipes, const Scheduled& scheduled);

 private:
  struct ScheduleAhead {
    Scheduled scheduled;
    std::optional<uint64_t> played_ns;
  };
  struct CandidateAhead {
    Recipe recipe;
    const Scheduled* scheduled;
  };

  static uint64_t hash_of(const Schedule& schedule, const Recipe& recipe);
  bool can_be_played(const Scheduled& scheduled) const;
  void make_candidates(const std::vector<CandidateAhead>& pieces);

  const Workload& workload_;
  uint64_t chunks_;
  std::unordered_map<uint64_t, bool> placed_;         // by the hash of schedule and placement
  std::unordered_map<uint64_t, uint64_t> schedules_;  // by the hash of a recipe's other half: the schedule's
  uint64_t recipe_ = 0;                               // of the schedule at hand
  Scheduled scheduled_;
  std::optional<uint64_t> played_ns_;  // of that
  std::optional<SchedulePlayer> player_;
  // Made ahead, by the same hashes.
  std::unordered_map<uint64_t, ScheduleAhead> schedules_ahead_;
  std::unordered_map<uint64_t, std::optional<PlanCandidate>> candidates_ahead_;
};

inline uint64_t Tried::hash_of(const Schedule& schedule, const Recipe& recipe) {
  return with_placement(hash_of_schedule(schedule), recipe);
}

inline std::optional<bool> Tried::placed(const Recipe& recipe) const {
  const auto schedule = schedules_.find(hash_of_question(recipe));
  if (schedule == schedules_.end()) return std::nullopt;
  const auto known = placed_.find(with_placement(schedule->second, recipe));
  return known == placed_.end() ? std::nullopt : std::optional(known->second);
}

inline const Scheduled& Tried::scheduled(const Recipe& recipe) {
  const uint64_t question = hash_of_question(recipe);
  if (recipe_ == question) return scheduled_;
  recipe_ = question;
  played_ns_.reset();
  if (const auto ahead = schedules_ahead_.find(question); ahead != schedules_ahead_.end()) {
    scheduled_ = ahead->second.scheduled;
    played_ns_ = ahead->second.played_ns;
  } else {
    scheduled_ = schedule_for(workload_.graph, workload_.device_subgraphs, workload_.machine, recipe);
  }
  schedules_[question] = hash_of_schedule(scheduled_.schedule);
  return scheduled_;
}

// The player knows one device, and a host that has room.
inline bool Tried::can_be_played(const Scheduled& scheduled) const {
  return workload_.device_subgraphs.empty() && workload_.graph.op_count >= kFewestPlayed && scheduled.tiers.fits;
}

inline uint64_t Tried::played_ns() {
  if (played_ns_) return *played_ns_;
  played_ns_ = 0;
  if (can_be_played(scheduled_)) {
    if (!player_) player_.emplace(workload_.graph, workload_.machine, chunks_);
    played_ns_ = player_->play(scheduled_.schedule, kHoweverLong)->iteration_ns;
  }
  return *played_ns_;
}

inline std::optional<PlanCandidate> Tried::candidate(const Recipe& recipe, const Scheduled& scheduled) {
  const auto ahead = candidates_ahead_.find(hash_of(scheduled.schedule, recipe));
  if (ahead == candidates_ahead_.end()) return make_candidate(workload_.graph, workload_.machine, recipe, scheduled);
  std::optional<PlanCandidate> candidate = std::move(ahead->second);
  candidates_ahead_.erase(ahead);
  if (candidate) candidate->recipe = recipe;  // another policy may lead to the same schedule
  if (candidate) candidate->policy = recipe.policy->name();
  return candidate;
}

inline void Tried::make_ahead(const std::vector<Recipe>& recipes, uint64_t most_ns) {
  schedules_ahead_.clear();
  candidates_ahead_.clear();
  if (processors() < 2) return;
  std::vector<Recipe> unknown;
  std::vector<Recipe> questions;
  for (const Recipe& recipe : recipes) {
    if (placed(recipe)) continue;
    unknown.push_back(recipe);
    if (schedules_ahead_.try_emplace(hash_of_question(recipe)).second) questions.push_back(recipe);
  }
  in_parallel(questions.size(), [&](size_t i) {
    ScheduleAhead& ahead = schedules_ahead_.at(hash_of_question(questions[i]));
    if (hash_of_question(questions[i]) == recipe_) {
      ahead = {scheduled_, played_ns_};
    } else {
      ahead.scheduled = schedule_for(workload_.graph, workload_.device_subgraphs, workload_.machine, questions[i]);
    }
    if (most_ns == kHoweverLong || ahead.played_ns || !can_be_played(ahead.scheduled)) return;
    SchedulePlayer player(workload_.graph, workload_.machine, chunks_);
    ahead.played_ns = player.play(ahead.scheduled.schedule, kHoweverLong)->iteration_ns;
  });
  std::vector<CandidateAhead> pieces;
  for (const Recipe& recipe : unknown) {
    const ScheduleAhead& ahead = schedules_ahead_.at(hash_of_question(recipe));
    if (ahead.played_ns.value_or(0) <= most_ns) pieces.push_back({recipe, &ahead.scheduled});
  }
  make_candidates(pieces);
}

inline void Tried::make_ahead(const std::vector<Recipe>& recipes, const Scheduled& scheduled) {
  candidates_ahead_.clear();
  if (processors() < 2) return;
  std::vector<CandidateAhead> pieces;
  pieces.reserve(recipes.size());
  for (const Recipe& recipe : recipes) pieces.push_back({recipe, &scheduled});
  make_candidates(pieces);
}

inline void Tried::make_candidates(const std::vector<CandidateAhead>& pieces) {
  std::vector<std::pair<const CandidateAhead*, std::optional<PlanCandidate>*>> made;
  for (const CandidateAhead& piece : pieces) {
    const uint64_t hash = hash_of(piece.scheduled->schedule, piece.recipe);
    if (placed_.count(hash) != 0) continue;
    const auto [candidate, is_new] = candidates_ahead_.try_emplace(hash);
    if (is_new) made.emplace_back(&piece, &candidate->second);
  }
  in_parallel(made.size(), [&](size_t i) {
    const auto& [piece, candidate] = made[i];
    *candidate = make_candidate(workload_.graph, workload_.machine, piece->recipe, *piece->scheduled);
  });
}

}  // namespace reprise::analyzer
