// The result of next(), for the training loop.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "leat/base/hash.h"
#include "leat/base/ids.h"
#include "leat/pipeline/program/tensor.h"
#include "leat/pipeline/slot.h"

namespace leat {

class SlotPool;  // slot_pool.h

/// How the values of a field are arranged in a batch.
enum class ArrayKind : std::uint8_t {
  kDense,    ///< `values`: shape (samples, ...), in C order.
  kRagged,   ///< `values`: one sample after another; `offsets`, `shapes`.
  kStrings,  ///< `strings`: one a sample.
};

/// One field of a batch, in slots of its own: writable, and shared with nobody.
struct FieldArray {
  std::string name;
  ArrayKind kind = ArrayKind::kDense;
  DType dtype = DType::kUint8;
  std::vector<std::int64_t> shape;  ///< (samples, ...); ragged: (total, ...).
  SlotRef values;                   ///< Null for kStrings.
  /// kRagged: int64, (samples + 1): the offset of each sample along the first
  /// dimension of `values`, and the end.
  SlotRef offsets;
  /// kRagged, if more than the first dimension may differ: int64, (samples,
  /// dimensions); `values` then has one dimension. Otherwise null.
  SlotRef shapes;
  std::vector<std::string> strings;
};

/// The samples of one rank in one step.
struct Batch {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::vector<SampleId> ids;  ///< In the order of the rows.
  std::vector<FieldArray> fields;
  /// The sum of its samples' hashes (see content_hash.h); zero if not
  /// requested.
  Hash128 content_hash;
};

/// A batch with memory of its own, equal to `batch`.
Batch copy_of(const Batch& batch, SlotPool& slots);

}  // namespace leat
