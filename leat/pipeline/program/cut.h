// A point at which a chain of ops can be cut in two, and the value there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "leat/base/hash.h"
#include "leat/base/result.h"
#include "leat/pipeline/program/program.h"

namespace leat {

/// The ops of a field that do the same to a sample in every epoch: those before
/// the first that draws, calls a user's function or makes floats. Their output
/// is a decoded record (decoded_record.h), which caches keep.
///
/// Threads: any, each with its own Scratch; it never changes.
class Cut {
 public:
  virtual ~Cut() = default;

  /// A hash of the ops with all their parameters, and of the code that runs
  /// them.
  virtual Hash128 name() const = 0;

  /// The length of a record, if it is the same for every sample.
  virtual std::optional<std::uint64_t> record_bytes() const = 0;

  /// The length of the record for these bytes. Reads headers only. nullopt:
  /// there is no record, because it could change the chain's output.
  ///
  /// Errors: as Program::output_for()
  virtual Result<std::optional<std::uint64_t>> record_bytes_for(
      std::span<const std::byte> encoded) const = 0;

  /// Writes the record. False: the sample is damaged, and there is no record.
  ///
  /// REQUIRES: record.size() == *record_bytes_for(encoded).
  /// Errors: as Program::run()
  virtual Result<bool> make(std::span<const std::byte> encoded,
                            Scratch& scratch, std::span<std::byte> record,
                            RunNotes& notes) const = 0;

  /// True if `record` is a whole record, which the rest of the chain can read.
  virtual bool can_read(std::span<const std::byte> record) const = 0;
};

/// A cut, and the ops behind it, which work on its records instead of the
/// field's bytes: one of the two programs, of the same kind as the whole chain.
struct CutChain {
  std::shared_ptr<const Cut> cut = nullptr;
  std::shared_ptr<const Program> rest = nullptr;
  std::shared_ptr<const ValueProgram> value_rest = nullptr;
};

}  // namespace leat
