// A user's function in a chain of ops.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/result.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/program/tensor.h"
#include "leat/pipeline/program/value.h"

namespace leat {

/// The argument of a function. Borrowed for the call.
struct FunctionInput {
  enum class Kind : std::uint8_t {
    kBytes,  ///< A field as stored.
    kArray,  ///< The array that ops made, in C order, described by `spec`.
    kText,   ///< UTF-8.
  };
  Kind kind = Kind::kBytes;
  std::span<const std::byte> bytes;
  TensorSpec spec;  ///< For kArray.
};

/// Makes one value from one sample.
///
/// Threads: several may use call() at a time.
class UserFunction {
 public:
  virtual ~UserFunction() = default;

  /// Its draws depend on `random` alone, if it keeps Leat's
  /// promises.
  ///
  /// Errors: its own; kCorrupt means that the sample is bad, kSkipped that the
  /// function passes over it, any other that the function is wrong.
  virtual Result<Value> call(const FunctionInput& input,
                             const SampleRandom& random) const = 0;

  /// Like call(), but takes one value of each of several fields
  /// and returns as many.
  virtual Result<std::vector<Value>> call_joint(
      std::span<const FunctionInput> inputs, const SampleRandom& random) const;

  /// The time that callers waited before it ran for a lock that lets only one
  /// call run (such as Python's), summed over threads. Only grows.
  virtual Nanoseconds waited_for_lock() const { return Nanoseconds(0); }
};

}  // namespace leat
