// Finds the features of a tf.train.Example, which comes piece by piece.
//
// The schema, of which nothing else is taken (TensorFlow's
// core/example/example.proto and feature.proto):
//
//     Example    1: Features
//     Features   1: entries of a map; each    1: name, 2: Feature
//     Feature    one of 1: BytesList, 2: FloatList, 3: Int64List
//     BytesList  1: value, repeated
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// The list in a tf.train.Feature, by the number of its field.
enum class FeatureKind : std::uint8_t {
  kNone = 0,  ///< No list: the sample lacks the feature.
  kBytes = 1,
  kFloat = 2,
  kInt64 = 3,
};

/// "bytes_list", "float_list" or "int64_list".
std::string_view to_string(FeatureKind kind);

/// Bytes of a file.
struct FilePart {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
};

/// A feature of an Example: where its bytes lie.
struct FoundFeature {
  std::string name;
  FeatureKind kind = FeatureKind::kNone;
  FilePart feature;          ///< The whole message tf.train.Feature.
  std::uint64_t values = 0;  ///< Their number, in a list of bytes.
  FilePart value;            ///< The last of them.
};

/// Goes through the fields of one Example from front to back.
///
/// Strict, so that other records are not taken for an Example: a field that the
/// schema does not have, or has once and is there twice, is an error. Holds
/// names and places, and no value.
///
/// Threads: one at a time.
class ExampleWalk {
 public:
  /// No feature has a longer name.
  static constexpr std::size_t kMostNameBytes = 1024;
  /// A record with more features is no Example.
  static constexpr std::size_t kMostFeatures = 4096;
  /// A field's tag, its length and a name are no longer.
  static constexpr std::size_t kMostFieldHead = 20 + kMostNameBytes;

  /// Begins with the record that lies at [begin, end) of its file.
  void start(std::uint64_t begin, std::uint64_t end);

  /// Goes through `bytes`, the next ones of the record, and returns how many it
  /// is done with: all but the head of a field that is not there whole. The
  /// rest is to come again, with more behind it.
  ///
  /// It gets on with kMostFieldHead bytes, or with all that are left.
  ///
  /// REQUIRES: bytes.size() is at most what is left of the record.
  /// Errors: kCorrupt  no Example; names the byte of the file
  Result<std::uint64_t> walk(std::span<const std::byte> bytes);

  /// The features found so far: all, once walk() is done with the record.
  const std::vector<FoundFeature>& features() const { return features_; }

 private:
  /// The message that the walk is in, in another each.
  enum Level : std::size_t { kExample, kMap, kEntry, kFeature, kBytesList };

  /// The tag and the length of a field.
  struct Head {
    std::uint64_t number = 0;
    std::uint64_t length = 0;  ///< The length of the value.
    std::size_t size_bytes = 0;
  };
  Result<std::optional<Head>> read_head(std::span<const std::byte> bytes) const;
  Result<bool> take_field(std::span<const std::byte> bytes);
  Result<bool> take_name(const Head& head, std::span<const std::byte> bytes);
  Result<bool> take_list(const Head& head);
  Result<void> leave();
  void enter(const Head& head);
  void pass_over(const Head& head);
  Error at_next(std::string_view why) const;

  std::uint64_t next_ = 0;  ///< In the file.
  std::uint64_t skip_ = 0;  ///< Bytes of a value that is passed over.
  std::size_t level_ = kExample;
  std::array<std::uint64_t, kBytesList + 1> ends_ =
      {};  ///< One for each level.
  FoundFeature entry_;
  bool has_name_ = false;
  bool has_value_ = false;
  std::vector<FoundFeature> features_;
};

}  // namespace leat
