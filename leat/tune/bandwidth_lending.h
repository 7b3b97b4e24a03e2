// What one job leaves of a node's bandwidth, others have at once.
#pragma once
#include <span>
#include <vector>

#include "leat/tune/allocation.h"

namespace leat {

/// What the claims were lately seen to read.
struct LinkReading {
  std::vector<double> bytes_per_second = {};  ///< Of each.
  bool is_full = false;  ///< Of the link nothing is left: some wait for others.
};

/// Bytes a second to hold each claim to, in their order, from what it was
/// lately seen to read.
///
/// Only those that run short are limited so that others keep what they need:
/// to what is best by the objective, with threads and cache as in `grants`.
/// Whoever needs less has headroom above it, at least an equal part; a claim
/// that nothing bounds too. What is kept for either is what it reads and a
/// little more, so that a job that goes slower than its figures say holds back
/// nobody. Where nobody runs short, everybody may use the whole.
///
/// `grants` have the present limits, and these are the answer unless others
/// gain something: the limits of a steady node rest.
///
/// REQUIRES: as many of each; node.bytes_per_second is finite.
std::vector<double> lend_bandwidth(const NodeResources& node,
                                   std::span<const Claim> claims,
                                   std::span<const Grant> grants,
                                   const LinkReading& reading,
                                   const AllocationOptions& options);

}  // namespace leat
