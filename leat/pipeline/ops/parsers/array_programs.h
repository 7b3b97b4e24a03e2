// The programs of ops that find an array in a field: of one shape in all
// samples, or ragged.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/pipeline/ops/parse_op.h"

namespace leat {

/// Arrays of one shape, straight into the slot. `Format` has, besides what is
/// used here, `Found`: an array with its `spec`.
template <class Format>
class DenseArrayProgram final : public Program {
 public:
  explicit DenseArrayProgram(Format format) : format_(std::move(format)) {}

  std::optional<TensorSpec> output() const override { return std::nullopt; }
  Result<TensorSpec> output_for(
      std::span<const std::byte> encoded) const override {
    LEAT_TRY(typename Format::Found found, format_.read(encoded));
    return std::move(found.spec);
  }
  Result<void> run(const SampleInput& input, const SampleRandom&, Scratch&,
                   std::span<std::byte> out, RunNotes&) const override {
    LEAT_TRY(const typename Format::Found found, format_.read(input.encoded));
    LEAT_CHECK(out.size() == found.spec.size_bytes());
    return format_.store(found, out);
  }
  std::string remedy() const override { return format_.remedy(); }

 private:
  const Format format_;
};

/// Arrays that may differ in their first dimension.
template <class Format>
class RaggedArrayProgram final : public ValueProgram {
 public:
  explicit RaggedArrayProgram(Format format) : format_(std::move(format)) {}

  Joining joining() const override { return Joining::kRagged; }
  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    return format_.most_bytes(encoded_bytes);
  }
  Result<Value> run(const SampleInput& input, const SampleRandom&, Scratch&,
                    RunNotes&) const override {
    LEAT_TRY(typename Format::Found found, format_.read(input.encoded));
    Buffer bytes(found.spec.size_bytes());
    LEAT_TRY_VOID(format_.store(found, bytes.span()));
    return Value(ArrayValue{std::move(found.spec), std::move(bytes)});
  }
  std::string remedy() const override { return format_.ragged_remedy(); }

 private:
  const Format format_;
};

template <class Format>
FieldProgram array_program(Format format, Joining joining) {
  if (joining == Joining::kRagged) {
    return {nullptr,
            std::make_shared<RaggedArrayProgram<Format>>(std::move(format))};
  }
  return {std::make_shared<DenseArrayProgram<Format>>(std::move(format)),
          nullptr};
}

}  // namespace leat
