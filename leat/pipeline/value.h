// A field whose type or shape is known only after its ops have run: a text, a
// list out of a document, whatever a user's function answers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "leat/base/buffer.h"
#include "leat/base/result.h"
#include "leat/pipeline/program.h"
#include "leat/pipeline/tensor.h"

namespace leat {

/// An array in C order.
struct ArrayValue {
  TensorSpec spec;
  Buffer bytes;  ///< spec.size_bytes() of them.
};

/// What a ValueProgram makes of one sample: an array or a text in UTF-8.
using Value = std::variant<ArrayValue, std::string>;

/// How the values of a batch come together. Texts become a list of texts.
/// Arrays have one type, in all batches of a loader, and become
enum class Joining : std::uint8_t {
  kStack,   ///< an array of one more dimension: their shapes are equal;
  kRagged,  ///< a Ragged: only their first dimension may differ.
};

/// In the place of a Program where only run() can tell what it makes.
///
/// A batch keeps the values of its rows and joins them when the last one is
/// there; so they take memory twice, which the batch reserves before anything
/// of it is fetched: that is what most_bytes() is for.
///
/// Threads: any, each with its own Scratch; it never changes.
class ValueProgram {
 public:
  virtual ~ValueProgram() = default;

  virtual Joining joining() const = 0;

  /// The most bytes that a value made of so many may have.
  virtual std::uint64_t most_bytes(std::uint64_t encoded_bytes) const = 0;

  /// Runs the ops.
  ///
  /// Errors:
  ///   kCorrupt, kNotFound  the sample is bad; others mean that the ops are
  virtual Result<Value> run(std::span<const std::byte> encoded,
                            const SampleRandom& random, Scratch& scratch,
                            RunNotes& notes) const = 0;

  /// What to write instead if two values do not fit together; behind a
  /// semicolon in a message.
  virtual std::string remedy() const = 0;
};

}  // namespace leat
