// The walk keeps the end of every message that it is in, five at most, so
// nothing recurses and nothing is looked at twice. A field's length is compared
// with the rest of its message before anything is done with it; so whatever the
// walk tells lies within the record.

#include "leat/codec/tfrecord/example_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/codec/text/text.h"
#include "leat/codec/tfrecord/wire.h"

namespace leat {

std::string_view to_string(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kBytes:
      return "bytes_list";
    case FeatureKind::kFloat:
      return "float_list";
    case FeatureKind::kInt64:
      return "int64_list";
    case FeatureKind::kNone:
      break;
  }
  return "no list";
}

void ExampleWalk::start(std::uint64_t begin, std::uint64_t end) {
  LEAT_CHECK(begin <= end);
  next_ = begin;
  skip_ = 0;
  level_ = kExample;
  ends_[kExample] = end;
  features_.clear();
}

Error ExampleWalk::at_next(std::string_view why) const {
  return corrupt("at byte {}: {}", next_, why);
}

Result<std::uint64_t> ExampleWalk::walk(std::span<const std::byte> bytes) {
  const std::uint64_t begin = next_;
  LEAT_CHECK(bytes.size() <= ends_[kExample] - begin);
  while (true) {
    const std::uint64_t passed =
        std::min<std::uint64_t>(skip_, bytes.size() - (next_ - begin));
    next_ += passed;
    skip_ -= passed;
    if (skip_ != 0) break;
    while (level_ != kExample && next_ == ends_[level_]) {
      LEAT_TRY_VOID(leave());
    }
    if (next_ == ends_[kExample]) break;
    LEAT_TRY(const bool is_taken, take_field(bytes.subspan(next_ - begin)));
    if (!is_taken) break;
  }
  return next_ - begin;
}

/// Nullopt: it is not there whole.
Result<std::optional<ExampleWalk::Head>> ExampleWalk::read_head(
    std::span<const std::byte> bytes) const {
  const std::uint64_t left = ends_[level_] - next_;
  const bool is_rest = bytes.size() >= left;
  auto rest = bytes.first(std::min<std::uint64_t>(bytes.size(), left));
  const std::size_t there = rest.size();
  const auto tag = take_varint(rest);
  if (tag && (*tag & 7) != kWireBytes) {
    return at_next("a field of a type that no Example has");
  }
  const auto length = tag ? take_varint(rest) : std::nullopt;
  if (!length) {
    if (is_rest || there >= 2 * kMostVarintBytes) {
      return at_next("a field is cut short");
    }
    return std::optional<Head>();
  }
  Head head{.number = *tag >> 3,
            .length = *length,
            .size_bytes = there - rest.size()};
  if (head.length > left - head.size_bytes) {
    return at_next("a field goes on behind the end of its message");
  }
  return std::optional<Head>(head);
}

/// Takes the field that begins with `bytes`. False: more of them are needed.
Result<bool> ExampleWalk::take_field(std::span<const std::byte> bytes) {
  LEAT_TRY(const std::optional<Head> head, read_head(bytes));
  if (!head) return false;
  if (level_ == kFeature) return take_list(*head);
  if (level_ == kEntry && head->number == 1) return take_name(*head, bytes);
  if (level_ == kEntry && head->number == 2 && !has_value_) {
    has_value_ = true;
    entry_.feature = {next_ + head->size_bytes, head->length};
    enter(*head);
    return true;
  }
  if (level_ == kEntry || head->number != 1) {
    return at_next("a field that no Example has there");
  }
  if (level_ == kBytesList) {
    ++entry_.values;
    entry_.value = {next_ + head->size_bytes, head->length};
    pass_over(*head);
    return true;
  }
  enter(*head);
  if (level_ == kEntry) {
    entry_ = {};
    has_name_ = has_value_ = false;
  }
  return true;
}

Result<bool> ExampleWalk::take_name(const Head& head,
                                    std::span<const std::byte> bytes) {
  if (has_name_ || head.length == 0 || head.length > kMostNameBytes) {
    return at_next(fmt::format("a feature's name of {} bytes, or its second",
                               head.length));
  }
  if (bytes.size() - head.size_bytes < head.length) return false;
  const auto name = bytes.subspan(head.size_bytes, head.length);
  if (first_invalid_utf8(as_text(name))) {
    return at_next(
        fmt::format("a feature's name, {}, is no UTF-8", quoted(name)));
  }
  entry_.name = as_text(name);
  has_name_ = true;
  pass_over(head);
  return true;
}

Result<bool> ExampleWalk::take_list(const Head& head) {
  if (head.number < 1 || head.number > 3 || entry_.kind != FeatureKind::kNone) {
    return at_next("a feature with a second list, or one of another kind");
  }
  entry_.kind = static_cast<FeatureKind>(head.number);
  if (entry_.kind == FeatureKind::kBytes) {
    enter(head);
  } else {
    pass_over(head);
  }
  return true;
}

void ExampleWalk::enter(const Head& head) {
  next_ += head.size_bytes;
  ends_[++level_] = next_ + head.length;
}

void ExampleWalk::pass_over(const Head& head) {
  next_ += head.size_bytes;
  skip_ = head.length;
}

Result<void> ExampleWalk::leave() {
  if (level_ == kEntry && entry_.kind != FeatureKind::kNone) {
    if (!has_name_) return at_next("a feature without a name");
    if (features_.size() == kMostFeatures) {
      return at_next(fmt::format("more than {} features", kMostFeatures));
    }
    features_.push_back(std::move(entry_));
  }
  --level_;
  return {};
}

}  // namespace leat
