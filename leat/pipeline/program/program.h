// A compiled chain of ops: from the bytes of a field to an array in a slot.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/pipeline/program/tensor.h"

namespace leat {

class MemoryBudget;  // runtime/memory_budget.h
class SampleView;    // sample_view.h
class UserFunction;  // user_function.h

/// One op as a user wrote it: `leat.ops.RandomResizedCrop(224, scale=(0.5, 1))`
/// is {"random_resized_crop", R"({"size": 224, "scale": [0.5, 1.0]})"}.
struct OpSpec {
  std::string name;
  std::string params_json = "{}";
  /// For the op `python`: the function that it calls.
  std::shared_ptr<const UserFunction> function = nullptr;
};

/// Reads "decode_image,random_resized_crop:224,normalize:imagenet".
///
/// Errors: kInvalidArgument, naming the op and the ones there are.
Result<std::vector<OpSpec>> parse_ops(std::string_view text);

/// Reads Python's JSON list of {"name": …, "params": {…}}.
Result<std::vector<OpSpec>> ops_from_json(std::string_view json);

/// Everything that a random op may depend on, so that threads, world size and
/// resume never change a pixel.
struct SampleRandom {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  SampleId sample;
};

/// The input of a program.
struct SampleInput {
  template <class Bytes>
  requires std::convertible_to<Bytes, std::span<const std::byte>> SampleInput(
      const Bytes& bytes, SampleView* view = nullptr)
      : encoded(bytes), sample(view) {}

  std::span<const std::byte> encoded;  ///< The bytes of its own field.
  /// The rest of the sample; null if there is none.
  SampleView* sample = nullptr;
};

/// The results of a run apart from its pixels.
struct RunNotes {
  std::uint32_t decode_warnings = 0;
  /// The part of the run after the decoder had finished.
  Nanoseconds transform{0};
};

/// Memory that a thread reuses for running programs.
class Scratch;
struct ScratchDeleter {
  void operator()(Scratch* scratch) const;
};
using ScratchRef = std::unique_ptr<Scratch, ScratchDeleter>;
/// `decode_room` is the memory that decoders of all threads may take together,
/// and outlives the scratch; null: as much as they need.
ScratchRef make_scratch(MemoryBudget* decode_room = nullptr);

/// The ops of one field in one piece, fused where that saves a pass over the
/// pixels.
///
/// Threads: any, each with its own Scratch; it never changes.
class Program {
 public:
  virtual ~Program() = default;

  /// The array that run() writes, if it is the same for every sample; nullopt
  /// if it depends on the sample (a decoded image that is not resized).
  virtual std::optional<TensorSpec> output() const = 0;

  /// The array that run() would write for these bytes. Reads headers only.
  virtual Result<TensorSpec> output_for(
      std::span<const std::byte> encoded) const = 0;

  /// Runs the ops and writes the array, in C order, into `out`.
  ///
  /// REQUIRES: out.size() == output_for(input.encoded).size_bytes().
  /// Errors:
  ///   kCorrupt  the bytes are not what the ops read, cut short, or claim too
  ///             much; or fields of the sample do not fit together
  virtual Result<void> run(const SampleInput& input, const SampleRandom& random,
                           Scratch& scratch, std::span<std::byte> out,
                           RunNotes& notes) const = 0;

  /// The remedy if two samples have different shapes; follows a semicolon in a
  /// message.
  virtual std::string remedy() const = 0;

  /// The draws of the random ops for these bytes, as a JSON list; see DrawnOp.
  /// Reads headers only. Errors: as output_for()
  virtual Result<std::string> drawn(std::span<const std::byte>,
                                    const SampleRandom&) const {
    return std::string("[]");
  }
};

class ValueProgram;  // value.h
struct CutChain;     // cut.h

/// A field as the batch delivers it.
struct OutputField {
  std::string name;
  std::size_t source = 0;  ///< A field of the catalogue.
  /// At most one of the two; if neither is set, the field is as in the source.
  std::shared_ptr<const Program> program;
  std::shared_ptr<const ValueProgram> value_program;
  /// The same in two halves, if it can be cut; otherwise null.
  std::shared_ptr<const CutChain> cut_chain = nullptr;
  /// Other fields of the catalogue that its program reads.
  std::vector<std::size_t> also_read = {};
};

/// Decides what each op works on and compiles the chains. The outputs are the
/// catalogue's fields in order, with each op's `to` replacing its `field`.
///
/// Errors:
///   kInvalidArgument  an unknown op or parameter, a field that is not there or
///                     not what the op reads, an op before the decoder that it
///                     needs; each names the op and what to write instead
Result<std::vector<OutputField>> compile_ops(
    const std::vector<OpSpec>& ops, const std::vector<FieldSpec>& fields);

}  // namespace leat
