// A scan is one pass: a part of a record is taken as soon as it is there, a
// payload as far as it is there. So nothing is held but the places of one
// record's features, which become members once the payload's CRC was right.

#include "leat/codec/tfrecord/tfrecord_scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/base/hash.h"

namespace leat {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kCrcBytes = 4;
constexpr std::uint64_t kHeadBytes = kLengthBytes + kCrcBytes;

static_assert(std::endian::native == std::endian::little,
              "numbers are little-endian, and are copied");

template <class Number>
Number number_at(std::span<const std::byte> bytes) {
  Number number = 0;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

std::uint32_t masked(std::uint32_t crc) {
  return std::rotr(crc, 15) + 0xa282ead8U;
}

/// The name of what these first bytes are instead, if known: TensorFlow writes
/// both kinds, without an ending of their own.
std::optional<std::string_view> compression_of(
    std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return std::nullopt;
  const auto first = std::to_integer<unsigned>(bytes[0]);
  const auto second = std::to_integer<unsigned>(bytes[1]);
  if (first == 0x1f && second == 0x8b) return "gzip";
  if (first == 0x78 && (first * 256 + second) % 31 == 0) return "zlib";
  return std::nullopt;
}

}  // namespace

std::uint32_t tfrecord_crc(std::span<const std::byte> bytes) {
  return masked(crc32c(bytes));
}

std::optional<TfrecordScanner::Want> TfrecordScanner::wants() const {
  if (next_ == file_bytes_) return std::nullopt;
  return Want{.offset = next_,
              .length = std::min(kPieceBytes, file_bytes_ - next_)};
}

Result<void> TfrecordScanner::feed(std::span<const std::byte> bytes,
                                   std::vector<Member>& members) {
  LEAT_CHECK(next_ != file_bytes_ && bytes.size() == wants()->length);
  const std::uint64_t begin = next_;
  while (next_ < file_bytes_) {
    Result<bool> taken = take_part(bytes.subspan(next_ - begin), members);
    if (!taken) {
      return std::move(taken).error().while_doing(
          fmt::format("at byte {}: record {}", record_at_, record_));
    }
    if (!*taken) return {};
  }
  return {};
}

/// False: more bytes are needed. At the end of the file there is never a need:
/// a head is only taken if the file has room for all of its record.
Result<bool> TfrecordScanner::take_part(std::span<const std::byte> rest,
                                        std::vector<Member>& members) {
  switch (part_) {
    case Part::kHead:
      return take_head(rest);
    case Part::kPayload:
      return take_payload(rest);
    case Part::kFoot:
      break;
  }
  return take_foot(rest, members);
}

Result<bool> TfrecordScanner::take_head(std::span<const std::byte> rest) {
  record_at_ = next_;
  const std::uint64_t left = file_bytes_ - next_;
  const bool is_cut = left < kHeadBytes;
  if (!is_cut && rest.size() < kHeadBytes) return false;
  if (is_cut || tfrecord_crc(rest.first(kLengthBytes)) !=
                    number_at<std::uint32_t>(rest.subspan(kLengthBytes))) {
    if (const auto name = compression_of(rest); name && next_ == 0) {
      return invalid(
          "the file is compressed ({}), so no record can be read alone: write "
          "it without compression",
          *name);
    }
    if (is_cut) {
      return corrupt(
          "the file is cut short: {} bytes are left, and a record begins with "
          "{}",
          left, kHeadBytes);
    }
    return corrupt(
        "the CRC of its length does not match: the file is damaged, or no "
        "TFRecord");
  }
  const auto length = number_at<std::uint64_t>(rest);
  // Written so that a huge length cannot wrap around.
  if (left - kHeadBytes < kCrcBytes || length > left - kHeadBytes - kCrcBytes) {
    return corrupt("the file is cut short: it has {} bytes, and {} are left",
                   length, left - kHeadBytes);
  }
  next_ += kHeadBytes;
  payload_ = {next_, length};
  crc_ = 0;
  no_example_.reset();
  walk_.start(next_, next_ + length);
  part_ = Part::kPayload;
  return true;
}

bool TfrecordScanner::take_payload(std::span<const std::byte> rest) {
  const std::uint64_t left = payload_.offset + payload_.size_bytes - next_;
  std::uint64_t taken = std::min<std::uint64_t>(left, rest.size());
  if (form_ != Form::kOther && !no_example_) {
    if (auto walked = walk_.walk(rest.first(taken)); walked) {
      taken = *walked;
    } else {
      no_example_ = std::move(walked).error();  // The CRC comes first.
    }
  }
  crc_ = crc32c(rest.first(taken), crc_);
  next_ += taken;
  if (taken == left) part_ = Part::kFoot;
  return taken != 0 || left == 0;
}

Result<bool> TfrecordScanner::take_foot(std::span<const std::byte> rest,
                                        std::vector<Member>& members) {
  if (rest.size() < kCrcBytes) return false;
  if (masked(crc_) != number_at<std::uint32_t>(rest)) {
    return corrupt(
        "the CRC of its {} bytes does not match: the file is damaged",
        payload_.size_bytes);
  }
  LEAT_TRY_VOID(settle_form());
  LEAT_TRY_VOID(add_members(members));
  next_ += kCrcBytes;
  part_ = Part::kHead;
  ++record_;
  return true;
}

/// Decides by the first record, and holds the others to it.
Result<void> TfrecordScanner::settle_form() {
  if (form_ == Form::kUnknown && payload_.size_bytes != 0) {
    form_ = no_example_ ? Form::kOther : Form::kExample;
  }
  if (form_ != Form::kExample || !no_example_) return {};
  return std::move(*no_example_)
      .while_doing("no tf.train.Example, as those before it are");
}

Result<void> TfrecordScanner::add_members(std::vector<Member>& members) {
  const std::string name = std::to_string(record_);
  if (form_ != Form::kExample || walk_.features().empty()) {
    members.push_back({.name = name,
                       .offset = payload_.offset,
                       .size_bytes = payload_.size_bytes,
                       .field = std::string(kWholeRecord)});
    return {};
  }
  for (const FoundFeature& feature : walk_.features()) {
    LEAT_TRY_VOID(check_kind(feature));
    const bool is_bytes = feature.kind == FeatureKind::kBytes;
    const bool is_one = is_bytes && feature.values == 1;
    const FilePart& part = is_one ? feature.value : feature.feature;
    members.push_back(
        {.name = name,
         .offset = part.offset,
         .size_bytes = part.size_bytes,
         .field = is_bytes && !is_one ? feature.name + "[]" : feature.name});
  }
  return {};
}

Result<void> TfrecordScanner::check_kind(const FoundFeature& feature) {
  const auto found = kinds_.find(feature.name);
  if (found == kinds_.end()) {
    if (kinds_.size() == kMostNames) {
      return invalid(
          "more than {} features of different names in one file: store what "
          "varies as a list",
          kMostNames);
    }
    kinds_.emplace(feature.name, feature.kind);
    return {};
  }
  if (found->second == feature.kind) return {};
  return corrupt("feature '{}' is of kind {}, and of kind {} before",
                 feature.name, to_string(feature.kind),
                 to_string(found->second));
}

}  // namespace leat
