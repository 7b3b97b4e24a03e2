// Three passes, after Ginex: how often each sample is read (that sizes the
// lists), in which steps, and then the steps themselves with a pointer into
// each sample's list. Ginex finds what is kept with a running threshold over
// all candidates; an ordered set does it without looking at those that stay.

#include "leat/plan/changesets.h"

#include <iterator>
#include <set>
#include <utility>

#include "leat/plan/cache_policy.h"

namespace leat {
namespace {

/// The steps that each sample is read in, one list after another.
class ReadLists {
 public:
  ReadLists(const std::vector<std::vector<SampleId>>& steps,
            std::uint64_t samples)
      : next_(samples + 1, 0) {
    for (const auto& step : steps) {
      for (const SampleId id : step) ++next_[id.value + 1];
    }
    for (std::uint64_t i = 0; i < samples; ++i) next_[i + 1] += next_[i];
    reads_.resize(next_[samples]);
    end_.assign(next_.begin(), next_.end() - 1);
    for (std::uint64_t k = 0; k < steps.size(); ++k) {
      for (const SampleId id : steps[k]) reads_[end_[id.value]++] = k;
    }
  }

  /// Leaves the read that comes next behind, and says when the one after is.
  std::uint64_t pass(SampleId id) {
    ++next_[id.value];
    return is_at_end(id) ? kNever : reads_[next_[id.value]];
  }
  bool is_at_end(SampleId id) const {
    return next_[id.value] == end_[id.value];
  }

 private:
  std::vector<std::uint64_t> next_;  // Into reads_, of each sample.
  std::vector<std::uint64_t> end_;
  std::vector<std::uint64_t> reads_;
};

}  // namespace

std::vector<Changeset> make_changesets(
    const std::vector<std::vector<SampleId>>& steps, std::uint64_t samples,
    std::uint64_t capacity) {
  ReadLists lists(steps, samples);
  std::set<std::pair<std::uint64_t, SampleId>> held;  // By next use.
  std::vector<bool> came(samples, false);             // In the running step.
  std::vector<Changeset> changes(steps.size());
  for (std::uint64_t k = 0; k < steps.size(); ++k) {
    Changeset& change = changes[k];
    for (const SampleId id : steps[k]) {
      const bool is_hit = held.erase({k, id}) > 0;
      came[id.value] = !is_hit;
      if (is_hit) ++change.hits;
      const std::uint64_t next_use = lists.pass(id);
      if (next_use != kNever) {
        held.emplace(next_use, id);
      } else if (is_hit) {
        change.out.push_back(id);
      }
    }
    while (held.size() > capacity) {
      const auto furthest = std::prev(held.end());
      const SampleId id = furthest->second;
      held.erase(furthest);
      // What came and leaves in the same step was never there.
      if (!came[id.value]) change.out.push_back(id);
      came[id.value] = false;
    }
    for (const SampleId id : steps[k]) {
      // Never used again: it did not stay. Its list is at its end.
      if (came[id.value] && !lists.is_at_end(id)) change.in.push_back(id);
      came[id.value] = false;
    }
  }
  return changes;
}

}  // namespace leat
