// The samples that are passed over, kept for other ranks and later runs.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/owned_fd.h"
#include "leat/pipeline/excluded_samples.h"

namespace leat {

/// A line of the file. Parsing is exact: write and parse are inverses.
///
///     bad <tab> sample <tab> version <tab> key <tab> cause
///     skipped <tab> sample <tab> version <tab> key <tab> name of the filter
std::string to_line(const Exclusion& exclusion);
/// Nullopt: no such line. The bytes are untrusted.
std::optional<Exclusion> parse_exclusion(std::string_view line);

struct QuarantineOptions {
  std::string path;  ///< Empty: only this process knows.
  std::string url;   ///< For messages.
  /// Bad samples are passed over; otherwise they are read again, and raise.
  bool passes_bad = false;
  /// The filters whose answers are the same in every run.
  std::vector<std::string> filters;
  /// The sample's version as the catalogue says it now; nullopt: there is no
  /// catalogue, or no such sample. Lines of other versions are passed over.
  std::function<std::optional<std::string>(SampleId)> version_of;
};

/// Learns which samples are passed over, and writes each down once: the file
/// grows by a line for each, which ranks of a node append to together. It
/// belongs to one dataset in one place. A sample whose bytes were replaced
/// since is read again.
///
/// Threads: samples() any; look() one at a time.
class Quarantine {
 public:
  explicit Quarantine(QuarantineOptions options);

  ExcludedSamples& samples() { return samples_; }
  /// Takes in the lines that others have written since. Blocks.
  void look();
  /// Says how many samples are known by now, if any are.
  void introduce() const;

 private:
  void note(const Exclusion& exclusion);
  void tell(const Exclusion& exclusion);
  bool is_kept(const Exclusion& exclusion) const;
  bool is_of_now(const Exclusion& exclusion) const;
  void take(std::string_view line);

  const QuarantineOptions options_;
  OwnedFd to_read_;
  std::uint64_t read_bytes_ = 0;
  std::string rest_;          // The begin of a line that is not whole yet.
  OwnedFd to_write_;          // Under the lock of `samples_`.
  bool is_hopeless_ = false;  // Likewise: there is no file.
  std::uint64_t told_ = 0;    // Likewise.
  ExcludedSamples samples_;
};

/// The file of a dataset, which `identity` tells from every other; empty if the
/// environment names no folder for it, or one that others can write.
std::string quarantine_path(std::string_view identity, const Env& env);

}  // namespace leat
