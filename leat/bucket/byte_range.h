// The Range header, as S3 reads it.
#pragma once
#include <cstdint>
#include <string_view>
#include <variant>

namespace leat {

struct RequestedRange {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  friend bool operator==(const RequestedRange&,
                         const RequestedRange&) = default;
};

/// No range was asked for, or in a way that S3 passes over: two ranges, another
/// unit, nonsense. The whole object is the answer.
struct WholeObject {
  friend bool operator==(WholeObject, WholeObject) = default;
};
/// A range with no byte of the object in it: 416.
struct Unsatisfiable {
  friend bool operator==(Unsatisfiable, Unsatisfiable) = default;
};

using RangeAnswer = std::variant<WholeObject, RequestedRange, Unsatisfiable>;

/// Reads `header` (the value of Range; may be empty) for an object of
/// `object_bytes`. A range past the end is cut at the end.
RangeAnswer parse_range(std::string_view header, std::uint64_t object_bytes);

}  // namespace leat
