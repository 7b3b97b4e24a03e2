#include "leat/dataset/catalogue_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/dataset/catalogue_format.h"
#include "leat/dataset/catalogue_layout.h"

namespace leat {

using catalogue_format::kMostObjects;
using catalogue_format::kMostRange;
using catalogue_format::kMostSamples;
using catalogue_format::pack;
using catalogue_format::PackedRange;

namespace {

constexpr PackedRange kMissingRange = pack(ByteRange{});

}  // namespace

void CatalogueWriter::fail(std::string message) {
  if (!failed_) {
    failed_ = invalid("making a catalogue: " + std::move(message));
  }
}

std::size_t CatalogueWriter::add_field(FieldSpec spec) {
  for (const FieldSpec& other : fields_) {
    if (other.name == spec.name) {
      fail(fmt::format("two fields are called '{}'", spec.name));
    }
  }
  Column column;
  if (spec.kind == FieldKind::kBytes) {
    for (std::uint64_t i = 0; i < samples_; ++i) {
      column.words.push_back(kMissingRange.low);
      column.words.push_back(kMissingRange.high);
    }
  } else {
    column.words.assign(samples_, 0);
  }
  fields_.push_back(std::move(spec));
  columns_.push_back(std::move(column));
  return fields_.size() - 1;
}

ObjectIndex CatalogueWriter::add_object(const ObjectView& object) {
  const std::uint64_t index = object_sizes_.size();
  if (index == kMostObjects) {
    fail(fmt::format("more than {} objects", kMostObjects));
    return {};
  }
  object_sizes_.push_back(object.size_bytes);
  object_keys_.add(object.key);
  if (etag_kind_ != EtagKind::kNone) etags_.add(object.etag);
  return {static_cast<std::uint32_t>(index)};
}

void CatalogueWriter::give_samples_own_keys() {
  own_keys_.emplace();
  for (std::uint64_t i = 0; i < samples_; ++i) {
    own_keys_->add(object_keys_.at(i));
  }
}

SampleId CatalogueWriter::add_sample(std::string_view key) {
  if (samples_ == kMostSamples) fail("too many samples");
  if (!own_keys_ &&
      (samples_ >= objects() || object_keys_.at(samples_) != key)) {
    give_samples_own_keys();
  }
  if (own_keys_) own_keys_->add(key);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    Column& column = columns_[i];
    switch (fields_[i].kind) {
      case FieldKind::kBytes:
        column.words.push_back(kMissingRange.low);
        column.words.push_back(kMissingRange.high);
        if (has_checksums_) column.checksums.push_back(0);
        break;
      case FieldKind::kInt64:
      case FieldKind::kFloat64:
        column.words.push_back(0);
        break;
      case FieldKind::kString:
        column.words.push_back(column.text.size());
        break;
    }
  }
  return {samples_++};
}

std::uint64_t& CatalogueWriter::last_word(std::size_t field, FieldKind kind) {
  LEAT_CHECK(samples_ > 0 && field < fields_.size() &&
             fields_[field].kind == kind);
  return columns_[field].words.back();
}

bool CatalogueWriter::lies_in_its_object(const ByteRange& range) const {
  return range.is_missing() ||
         (range.object.value < objects() && range.offset < kMostRange &&
          range.length_bytes < kMostRange &&
          range.offset + range.length_bytes <=
              object_sizes_[range.object.value]);
}

void CatalogueWriter::set_range(std::size_t field, const ByteRange& range) {
  std::uint64_t& high = last_word(field, FieldKind::kBytes);
  if (!lies_in_its_object(range)) {
    return fail(fmt::format("bytes [{}, +{}) lie outside their object",
                            range.offset, range.length_bytes));
  }
  const PackedRange packed = range.is_missing() ? kMissingRange : pack(range);
  high = packed.high;
  *(&high - 1) = packed.low;
}

void CatalogueWriter::set_checksum(std::size_t field, std::uint32_t crc) {
  LEAT_CHECK(has_checksums_);
  last_word(field, FieldKind::kBytes);
  columns_[field].checksums.back() = crc;
}

void CatalogueWriter::set_int64(std::size_t field, std::int64_t value) {
  last_word(field, FieldKind::kInt64) = std::bit_cast<std::uint64_t>(value);
}

void CatalogueWriter::set_float64(std::size_t field, double value) {
  last_word(field, FieldKind::kFloat64) = std::bit_cast<std::uint64_t>(value);
}

void CatalogueWriter::set_string(std::size_t field, std::string_view value) {
  std::uint64_t& end = last_word(field, FieldKind::kString);
  Column& column = columns_[field];
  const std::size_t begin =
      samples_ == 1 ? 0 : column.words[column.words.size() - 2];
  column.text.replace(begin, std::string::npos, value);
  end = column.text.size();
}

void CatalogueWriter::take_objects(TextPool keys,
                                   std::vector<std::uint64_t> sizes,
                                   TextPool etags) {
  LEAT_CHECK(objects() == 0 && samples_ == 0 &&
             keys.ends.size() == sizes.size());
  LEAT_CHECK(etags.ends.size() ==
             (etag_kind_ == EtagKind::kNone ? 0 : sizes.size()));
  if (sizes.size() > kMostObjects) {
    fail(fmt::format("more than {} objects", kMostObjects));
  }
  object_keys_ = std::move(keys);
  object_sizes_ = std::move(sizes);
  etags_ = std::move(etags);
}

void CatalogueWriter::take_samples(std::uint64_t samples, TextPool keys) {
  LEAT_CHECK(samples_ == 0 && keys.ends.size() == samples);
  samples_ = samples;
  own_keys_ = std::move(keys);
}

void CatalogueWriter::take_samples_named_as_objects() {
  LEAT_CHECK(samples_ == 0);
  samples_ = objects();
}

CatalogueWriter::Column& CatalogueWriter::column_to_take(std::size_t field,
                                                         std::uint64_t values) {
  LEAT_CHECK(field < fields_.size() && values == samples_ &&
             columns_[field].words.empty());
  return columns_[field];
}

void CatalogueWriter::take_ranges(
    std::size_t field,
    const std::function<ByteRange(std::uint64_t sample)>& range) {
  Column& column = column_to_take(field, samples_);
  column.words.reserve(2 * samples_);
  for (std::uint64_t sample = 0; sample < samples_; ++sample) {
    const ByteRange found = range(sample);
    if (!lies_in_its_object(found)) {
      fail(fmt::format("sample {}: bytes [{}, +{}) lie outside their object",
                       sample, found.offset, found.length_bytes));
      return;
    }
    const PackedRange packed = found.is_missing() ? kMissingRange : pack(found);
    column.words.push_back(packed.low);
    column.words.push_back(packed.high);
  }
}

void CatalogueWriter::take_numbers(std::size_t field,
                                   std::vector<std::uint64_t> words) {
  Column& column = column_to_take(field, words.size());
  column.words = std::move(words);
}

void CatalogueWriter::take_strings(std::size_t field, TextPool values) {
  Column& column = column_to_take(field, values.ends.size());
  column.words = std::move(values.ends);
  column.text = std::move(values.text);
}

Result<Buffer> CatalogueWriter::finish() && {
  // Some objects have no sample, so their keys cannot serve as samples' keys.
  if (!own_keys_ && samples_ != objects()) give_samples_own_keys();
  if (failed_) return *std::move(failed_);
  CatalogueLayout layout(*this);
  return std::move(layout).write();
}

}  // namespace leat
