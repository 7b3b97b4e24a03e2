// A field whose type or shape is known only after its ops have run: a text, a
// list from a document, or the result of a user's function.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "leat/base/buffer.h"
#include "leat/base/result.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/program/tensor.h"

namespace leat {

/// An array in C order.
struct ArrayValue {
  TensorSpec spec;
  Buffer bytes;  ///< spec.size_bytes() of them.
};

/// The output of a ValueProgram for one sample: an array or a text in UTF-8.
using Value = std::variant<ArrayValue, std::string>;

/// How the values of a batch are joined. Texts become a list of texts. Arrays
/// have one type, in all batches of a loader, and become
enum class Joining : std::uint8_t {
  kStack,   ///< an array of one more dimension: their shapes are equal;
  kRagged,  ///< a Ragged: only their first dimension may differ;
  kShapes,  ///< a Ragged with their shapes, which may differ altogether;
  kEither,  ///< kStack where the shapes of a batch are equal, else kShapes;
  kPadded,  ///< as kStack, each picture filled up to one size: see PadRule.
};

/// How pictures of a batch are brought to one size: padded below and on the
/// right.
struct PadRule {
  /// Height and width; 0: the largest in the batch.
  std::array<std::int64_t, 2> size = {0, 0};
  std::int64_t multiple = 1;  ///< Rounds up to a multiple of this.
  double fill = 0;            ///< A value of the array's own type.
  std::size_t height_at = 1;  ///< The dimension; the width's is the next.
  bool is_of_pictures = false;
};

/// Used instead of a Program if only run() can tell what it makes.
///
/// A batch keeps the values of its rows and joins them when the last one is
/// there. So they take memory twice, which the batch reserves before anything
/// of it is fetched: most_bytes() is for that.
///
/// Threads: any, each with its own Scratch; it never changes.
class ValueProgram {
 public:
  virtual ~ValueProgram() = default;

  virtual Joining joining() const = 0;
  /// For kPadded.
  virtual PadRule pad_rule() const { return {}; }

  /// The most bytes of a value made from this many; if only the bytes
  /// themselves tell, the most that such values have needed so far.
  virtual std::uint64_t most_bytes(std::uint64_t encoded_bytes) const = 0;

  /// Whether most_bytes() is a guess, which spec_for() corrects.
  virtual bool guesses() const { return false; }
  /// The spec of run()'s result for these bytes, as far as it can be known.
  /// None: they are damaged. REQUIRES: guesses().
  virtual std::optional<TensorSpec> spec_for(std::span<const std::byte>) const {
    return std::nullopt;
  }

  /// Runs the ops.
  ///
  /// Errors:
  ///   kCorrupt, kNotFound  the sample is bad; others mean that the ops are
  virtual Result<Value> run(const SampleInput& input,
                            const SampleRandom& random, Scratch& scratch,
                            RunNotes& notes) const = 0;

  /// The remedy if two values do not fit together; follows a semicolon in a
  /// message.
  virtual std::string remedy() const = 0;
};

}  // namespace leat
