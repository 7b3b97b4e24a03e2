// What goes into a cache and what leaves it at each step, computed beforehand.
#pragma once
#include <cstdint>
#include <vector>

#include "leat/base/ids.h"

namespace leat {

/// Of one step.
struct Changeset {
  std::vector<SampleId> in;  ///< Read in this step, not held, kept from now on.
  std::vector<SampleId> out;  ///< Held, and given up for them after the step.
  std::uint64_t hits = 0;     ///< Of the step's samples, those that were held.
};

/// Belady's rule a step at a time (Ginex, VLDB 2022, "changeset"): after each
/// step the `capacity` samples that are used soonest stay, of those held and
/// those of the step. The runtime then only carries lists out: no look-up, no
/// lock. Starts empty; nothing is known of what comes after `steps`, so what
/// is not used again in them leaves.
///
/// `steps` are those of a superbatch; no sample stands in a step twice. Samples
/// are below `samples`. Time O(reads * log capacity), memory O(samples +
/// reads).
std::vector<Changeset> make_changesets(
    const std::vector<std::vector<SampleId>>& steps, std::uint64_t samples,
    std::uint64_t capacity);

}  // namespace leat
