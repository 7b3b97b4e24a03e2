// A program's view of its sample apart from the bytes of its own field.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/pipeline/program/value.h"

namespace leat {

/// One sample while its ops run.
///
/// Threads: one.
class SampleView {
 public:
  virtual ~SampleView() = default;

  /// The bytes of a column of the catalogue; empty if there are none.
  virtual std::span<const std::byte> bytes_of(std::size_t column) const = 0;
  /// The decoded record of a column; empty if there is none.
  virtual std::span<const std::byte> record_of(std::size_t column) const = 0;

  /// A field as seen by an op that works on several fields at once.
  struct Met {
    std::size_t op_index = 0;
    std::string_view op;
    std::string field;
    std::uint32_t width = 0;
    std::uint32_t height = 0;
  };
  /// Says so. Errors: kCorrupt: another field came there with another size.
  Result<void> meet(Met met);

  /// The values that a program made for several fields of the sample, kept
  /// until each field has taken its own. Null: it has not run.
  std::vector<Value>* made_by(const void* program);
  std::vector<Value>& keep(const void* program, std::vector<Value> values);

  /// Lets go of all of that: another sample takes its place.
  void forget();

 private:
  struct Made {
    const void* program;
    std::vector<Value> values;
  };
  std::vector<Made> made_;
  std::vector<Met> met_;  ///< The first of each op.
};

}  // namespace leat
