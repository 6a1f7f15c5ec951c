#include "analyzer/bounds/recompute_places.h"

#include <algorithm>
#include <set>

namespace reprise::analyzer {
namespace {

// What an op needs to run again at a place: ops whose outputs are freed by then.
void add_needed(const TaskGraph& graph, const RecomputeUses& uses, CallIndex call, CallIndex place,
                std::set<CallIndex>& needed) {
  for (const plan::OpAccess& access : graph.calls[call].call.accesses) {
    if (!reads(access) || graph.tensors[access.tensor].chunk_count == 0) continue;
    const CallIndex maker = uses.maker(access.tensor);
    if (maker == kNone || uses.needed_at(access.tensor, place)) continue;
    if (needed.insert(maker).second) add_needed(graph, uses, maker, place, needed);
  }
}

}  // namespace

RecomputePlaces::RecomputePlaces(const TaskGraph& graph, const std::vector<RecomputeCandidate>& candidates)
    : graph_(graph),
      candidates_(candidates),
      uses_(graph),
      maker_(graph.tensors.size(), CallIndex{kNone}),
      candidate_of_(graph.calls.size(), kNone),
      readers_(graph.tensors.size()),
      places_(candidates.size()) {
  find_makers();
  find_places();
  find_causes();
}

void RecomputePlaces::find_makers() {
  for (uint32_t c = 0; c < candidates_.size(); ++c) {
    candidate_of_[candidates_[c].call] = c;
    repeats_[candidates_[c].call].causes.push_back({c});
    for (const CallIndex other : candidates_[c].others) repeats_[other];
  }
  for (const auto& [call, repeat] : repeats_) {
    std::set<uint32_t> read;
    for (const plan::OpAccess& access : graph_.calls[call].call.accesses) {
      if (changes(access)) maker_[access.tensor] = call;
      if (!changes(access) && reads(access)) read.insert(access.tensor);
    }
    for (const uint32_t tensor : read) readers_[tensor].push_back(call);
  }
}

bool RecomputePlaces::is_dropped_at(uint32_t tensor, CallIndex place) const {
  const CallIndex until = candidates_[candidate_making(tensor)].before;
  const std::vector<CallIndex>& uses = uses_.uses(tensor);
  const auto next = std::lower_bound(uses.begin(), uses.end(), until);
  return place < until && next != uses.begin() && *std::prev(next) < place;
}

// Those that read stand behind those that make what they read.
void RecomputePlaces::find_places() {
  std::vector<std::set<CallIndex>> places(candidates_.size());
  std::map<CallIndex, std::vector<uint32_t>> with;  // op -> candidates with which it runs again
  for (uint32_t c = 0; c < candidates_.size(); ++c) {
    places[c].insert(candidates_[c].before);
    with[candidates_[c].call].push_back(c);
    for (const CallIndex other : candidates_[c].others) with[other].push_back(c);
  }
  for (auto c = static_cast<uint32_t>(candidates_.size()); c-- > 0;) {
    for (const plan::OpAccess& access : graph_.calls[candidates_[c].call].call.accesses) {
      if (!changes(access)) continue;
      for (const CallIndex reader : readers_[access.tensor]) {
        for (const uint32_t other : with[reader]) {
          for (const CallIndex place : places[other]) {
            if (is_dropped_at(access.tensor, place)) places[c].insert(place);
          }
        }
      }
    }
    places_[c].assign(places[c].begin(), places[c].end());
  }
}

void RecomputePlaces::find_causes() {
  for (uint32_t c = 0; c < candidates_.size(); ++c) {
    std::map<CallIndex, CallIndex> not_until;  // by other
    for (const CallIndex place : places_[c]) {
      std::set<CallIndex> needed;
      add_needed(graph_, uses_, candidates_[c].call, place, needed);
      for (const CallIndex other : candidates_[c].others) {
        if (!needed.contains(other)) not_until[other] = place;
      }
    }
    for (const CallIndex other : candidates_[c].others) {
      const auto at = not_until.find(other);
      repeats_[other].causes.push_back({c, at == not_until.end() ? CallIndex{kNone} : at->second});
    }
  }
  for (auto& [call, repeat] : repeats_) {
    std::set<CallIndex> places;
    for (const Cause& cause : repeat.causes)
      places.insert(places_[cause.candidate].begin(), places_[cause.candidate].end());
    repeat.places.assign(places.begin(), places.end());
  }
}

}  // namespace reprise::analyzer
