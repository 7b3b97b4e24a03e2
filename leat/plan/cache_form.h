// The form in which a cache keeps samples: as bytes, or as what the first ops
// make of them.
#pragma once
#include <cstdint>
#include <string>

namespace leat {

/// The average costs of one sample.
struct FormCosts {
  double encoded_bytes = 0;  ///< The size of a record of its bytes.
  double decoded_bytes = 0;  ///< The size of a record of the decoded sample.
  /// To fetch it, if all requests are in flight: latency / requests.
  double fetch_seconds = 0;
  // Seconds of a core.
  double whole_seconds = 0;   ///< For all ops, from the bytes.
  double before_seconds = 0;  ///< From the bytes to the record in its tier.
  double rest_seconds = 0;    ///< From that record on.
};

/// The resources that may be used.
struct FormLimits {
  std::uint64_t samples = 0;
  double cache_bytes = 0;
  double cores = 1;
  /// The speed of reading hits; 0: unlimited.
  double hit_bytes_per_second = 0;
  /// The epochs that remain, including the running one, in which nothing hits
  /// yet; 0: so many that their number does not matter.
  std::uint64_t epochs = 0;
  /// A mixture of samples in both forms is allowed.
  bool may_mix = true;
};

/// The share of the samples that is kept decoded, and its effects. A value.
struct FormChoice {
  double decoded_share = 0;  ///< 0: all as bytes. 1: all decoded.
  /// As a share of the reads, from the second epoch on.
  double hit_share = 0;
  double seconds = 0;       ///< A sample: fetching, hits or cores, the slowest.
  double core_seconds = 0;  ///< For a sample, on cores.
  // The same for the epoch that makes the records.
  double first_seconds = 0;
  double first_core_seconds = 0;
};

/// Predicts the effects of that share.
FormChoice predict_form(const FormCosts& costs, const FormLimits& limits,
                        double decoded_share);

/// The share with the fewest seconds for a sample, over all remaining epochs,
/// by a margin that measurements can tell. Ties go to the least core time, then
/// to the smallest share.
FormChoice choose_form(const FormCosts& costs, const FormLimits& limits);

/// "decoded: of 1,281,167 samples of 110 KiB, decoded 590 KiB, … ", for a log.
std::string explain_form(const FormCosts& costs, const FormLimits& limits,
                         const FormChoice& choice);

}  // namespace leat
