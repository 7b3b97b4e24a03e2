// The place at which a chain of ops may be cut in two, and the value there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "leat/base/hash.h"
#include "leat/base/result.h"
#include "leat/pipeline/program.h"

namespace leat {

/// The ops of a field that make the same of a sample in every epoch: those
/// before the first that draws, calls a function of the user's or makes floats.
/// Their output is a decoded record (decoded_record.h), which caches keep.
///
/// Threads: any, each with its own Scratch; it never changes.
class Cut {
 public:
  virtual ~Cut() = default;

  /// A hash of the ops, with all their parameters, and of the code that runs
  /// them.
  virtual Hash128 name() const = 0;

  /// The length of a record, if it is the same for every sample.
  virtual std::optional<std::uint64_t> record_bytes() const = 0;

  /// The length of the record of these bytes. Reads headers only. nullopt: it
  /// has none, because a record could change the chain's output.
  ///
  /// Errors: as Program::output_for()
  virtual Result<std::optional<std::uint64_t>> record_bytes_for(
      std::span<const std::byte> encoded) const = 0;

  /// Writes the record. False: it was made of a damaged sample, and is none.
  ///
  /// REQUIRES: record.size() == *record_bytes_for(encoded).
  /// Errors: as Program::run()
  virtual Result<bool> make(std::span<const std::byte> encoded,
                            Scratch& scratch, std::span<std::byte> record,
                            RunNotes& notes) const = 0;

  /// True if that is a whole record, which the rest of the chain can read.
  virtual bool can_read(std::span<const std::byte> record) const = 0;
};

/// A cut, and the ops behind it, which work on its records in the place of the
/// bytes of the field: one of the two programs, as the whole chain has it.
struct CutChain {
  std::shared_ptr<const Cut> cut = nullptr;
  std::shared_ptr<const Program> rest = nullptr;
  std::shared_ptr<const ValueProgram> value_rest = nullptr;
};

}  // namespace leat
