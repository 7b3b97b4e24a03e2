// Finds the samples of a TFRecord file, and the features of each.
//
// A file is a row of records, little-endian (TensorFlow's
// core/lib/io/record_writer.h):
//
//     length   8 bytes  of the payload
//     crc      4 bytes  of the length's bytes
//     payload
//     crc      4 bytes  of the payload
//
// A crc is a CRC32C, turned right by 15 bits, plus 0xa282ead8 modulo 2^32.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/codec/member_scanner.h"
#include "leat/codec/tfrecord/example_walk.h"

namespace leat {

/// The CRC of these bytes as a TFRecord has it.
std::uint32_t tfrecord_crc(std::span<const std::byte> bytes);

/// Reads each byte once, and checks every CRC. If the first record that is not
/// empty is a tf.train.Example, all are, and their features are the members:
///
///     bytes_list of one value      the value, under the feature's name
///     bytes_list of none, several  the message tf.train.Feature, as "name[]"
///     float_list, int64_list       the message tf.train.Feature, as "name"
///
/// A record without features, and each record of any other kind, is one member
/// of the field kWholeRecord. A member's name is the number of its record.
class TfrecordScanner final : public MemberScanner {
 public:
  static constexpr std::string_view kWholeRecord = "tfrecord";
  static constexpr std::uint64_t kPieceBytes = 4 << 20;
  /// Features of different names in one file.
  static constexpr std::size_t kMostNames = 4096;

  explicit TfrecordScanner(std::uint64_t file_bytes)
      : file_bytes_(file_bytes) {}

  std::optional<Want> wants() const override;
  /// Errors:
  ///   kCorrupt          cut short, a CRC that does not match, an Example that
  ///                     is not one, a feature whose kind changes; names the
  ///                     offset and the record
  ///   kInvalidArgument  compressed, or too many features
  Result<void> feed(std::span<const std::byte> bytes,
                    std::vector<Member>& members) override;

 private:
  /// The part of a record that comes next.
  enum class Part : std::uint8_t { kHead, kPayload, kFoot };
  /// All records of the file are so.
  enum class Form : std::uint8_t { kUnknown, kExample, kOther };

  Result<bool> take_part(std::span<const std::byte> rest,
                         std::vector<Member>& members);
  Result<bool> take_head(std::span<const std::byte> rest);
  bool take_payload(std::span<const std::byte> rest);
  Result<bool> take_foot(std::span<const std::byte> rest,
                         std::vector<Member>& members);
  Result<void> settle_form();
  Result<void> add_members(std::vector<Member>& members);
  Result<void> check_kind(const FoundFeature& feature);

  const std::uint64_t file_bytes_;
  std::uint64_t next_ = 0;
  Part part_ = Part::kHead;
  Form form_ = Form::kUnknown;
  std::uint64_t record_ = 0;     ///< Its number.
  std::uint64_t record_at_ = 0;  ///< The offset of its head.
  FilePart payload_;
  std::uint32_t crc_ = 0;  ///< The CRC of the payload up to next_.
  ExampleWalk walk_;
  std::optional<Error> no_example_;  ///< Why the record is not one.
  std::map<std::string, FeatureKind, std::less<>> kinds_;
};

}  // namespace leat
