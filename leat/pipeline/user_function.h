// A function of the user's in a chain of ops.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/result.h"
#include "leat/pipeline/program.h"
#include "leat/pipeline/tensor.h"
#include "leat/pipeline/value.h"

namespace leat {

/// The argument of a function. Lent for the call.
struct FunctionInput {
  enum class Kind : std::uint8_t {
    kBytes,  ///< A field as it is stored.
    kArray,  ///< The array that ops made, in C order, of `spec`.
    kText,   ///< UTF-8.
  };
  Kind kind = Kind::kBytes;
  std::span<const std::byte> bytes;
  TensorSpec spec;  ///< For kArray.
};

/// Makes one value of one sample.
///
/// Threads: call() by several at once.
class UserFunction {
 public:
  virtual ~UserFunction() = default;

  /// Its draws are a function of `random` alone, if it keeps what Leat
  /// promises.
  ///
  /// Errors: its own; kCorrupt says that the sample is bad, anything else that
  /// the function is.
  virtual Result<Value> call(const FunctionInput& input,
                             const SampleRandom& random) const = 0;

  /// As call(), with a value of each of several fields; makes as many.
  virtual Result<std::vector<Value>> call_joint(
      std::span<const FunctionInput> inputs, const SampleRandom& random) const;

  /// Time that callers waited, before it ran, for a lock that lets one call
  /// run at a time (such as Python's), summed over threads. Only grows.
  virtual Nanoseconds waited_for_lock() const { return Nanoseconds(0); }
};

}  // namespace leat
