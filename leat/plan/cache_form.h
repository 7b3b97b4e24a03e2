// In which form a cache keeps samples: their bytes, or what the first ops make
// of them.
#pragma once
#include <cstdint>
#include <string>

namespace leat {

/// The average costs of one sample.
struct FormCosts {
  double encoded_bytes = 0;  ///< The size of a record of its bytes.
  double decoded_bytes = 0;  ///< The size of a record of the decoded sample.
  /// To fetch it, with all requests in flight: latency / requests.
  double fetch_seconds = 0;
  // Seconds of a core.
  double whole_seconds = 0;   ///< For all ops, from the bytes.
  double before_seconds = 0;  ///< From the bytes to the record in its tier.
  double rest_seconds = 0;    ///< From there on.
};

/// The resources to spend.
struct FormLimits {
  std::uint64_t samples = 0;
  double cache_bytes = 0;
  double cores = 1;
  /// That hits can be read with; 0: without end.
  double hit_bytes_per_second = 0;
  /// Epochs that are left, with the running one, in which nothing hits yet; 0:
  /// so many that it does not count.
  std::uint64_t epochs = 0;
  /// Samples of both forms beside each other are an answer too.
  bool may_mix = true;
};

/// A share of the samples that is kept decoded, and its effects. Pure.
struct FormChoice {
  double decoded_share = 0;  ///< 0: all as bytes. 1: all decoded.
  /// A share of the reads, from the second epoch on.
  double hit_share = 0;
  double seconds = 0;       ///< A sample: fetching, hits or cores, the slowest.
  double core_seconds = 0;  ///< A sample, of cores.
  // The same of the epoch that makes the records.
  double first_seconds = 0;
  double first_core_seconds = 0;
};

/// The prediction for that share.
FormChoice predict_form(const FormCosts& costs, const FormLimits& limits,
                        double decoded_share);

/// The share with the least seconds a sample, over all epochs that are left, by
/// a margin that measuring can tell. Among equals, the one with the least time
/// of cores; among those, the smallest.
FormChoice choose_form(const FormCosts& costs, const FormLimits& limits);

/// "decoded: of 1,281,167 samples of 110 KiB, decoded 590 KiB, … ", for a log.
std::string explain_form(const FormCosts& costs, const FormLimits& limits,
                         const FormChoice& choice);

}  // namespace leat
