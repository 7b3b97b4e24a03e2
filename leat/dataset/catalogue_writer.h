// Makes catalogues.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"

namespace leat {

/// Texts one after another, and where each ends.
struct TextPool {
  std::string text;
  std::vector<std::uint64_t> ends;

  void add(std::string_view added) {
    text.append(added);
    ends.push_back(text.size());
  }
  std::string_view at(std::size_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(text).substr(begin, ends[i] - begin);
  }
};

/// Collects the samples of a dataset in memory and writes their catalogue.
///
/// Samples keep the order in which they were added; values are stored as narrow
/// as the widest of their column. The writer remembers a value that it cannot
/// store, and finish() reports it, so that adding needs no checks.
///
/// Threads: one at a time.
class CatalogueWriter {
 public:
  CatalogueWriter(Layout layout, EtagKind etag_kind)
      : layout_(layout), etag_kind_(etag_kind) {}

  void set_classes(std::vector<std::string> classes) {
    classes_ = std::move(classes);
  }

  /// Keeps checksums of byte fields, 0 unless they are set: none.
  /// REQUIRES: no sample was added yet.
  void keep_checksums() { has_checksums_ = true; }

  /// Samples added so far lack the field: no bytes, 0 or "".
  std::size_t add_field(FieldSpec spec);
  const std::vector<FieldSpec>& fields() const { return fields_; }

  ObjectIndex add_object(const ObjectView& object);

  /// Adds a sample that lacks all fields. Keys are not stored if each sample
  /// has the name of the object with the same number, added before it.
  SampleId add_sample(std::string_view key);
  std::uint64_t samples() const { return samples_; }
  std::uint64_t objects() const { return object_sizes_.size(); }
  std::uint64_t object_size(ObjectIndex object) const {
    return object_sizes_[object.value];
  }

  /// Sets a field of the sample that was added last.
  /// REQUIRES: there is a sample, and the field has that kind.
  void set_range(std::size_t field, const ByteRange& range);
  /// Its CRC32C. REQUIRES: keep_checksums().
  void set_checksum(std::size_t field, std::uint32_t crc);
  void set_int64(std::size_t field, std::int64_t value);
  void set_float64(std::size_t field, double value);
  void set_string(std::size_t field, std::string_view value);

  /// The same for who has whole columns: they are moved, not copied. Each is in
  /// the place of the calls above for what it sets.
  /// REQUIRES: nothing of it was added before; texts and numbers as many as
  /// there are objects or samples. Objects come before samples, and samples
  /// before columns.
  void take_objects(TextPool keys, std::vector<std::uint64_t> sizes,
                    TextPool etags);
  void take_samples(std::uint64_t samples, TextPool keys);
  /// Samples that have the names of the objects with their numbers.
  void take_samples_named_as_objects();
  void take_ranges(std::size_t field,
                   const std::function<ByteRange(std::uint64_t sample)>& range);
  /// The numbers of an int64 field, or the bits of a float64 one's.
  void take_numbers(std::size_t field, std::vector<std::uint64_t> words);
  void take_strings(std::size_t field, TextPool values);

  /// The file. It frees what was collected as it writes that, so that both are
  /// never in memory whole.
  ///
  /// Errors:
  ///   kInvalidArgument  too many objects, a range outside its object or past
  ///                     2^48 bytes, two fields of one name
  Result<Buffer> finish() &&;

 private:
  struct Column {
    /// Per sample: two words of a range, the bits of a number, or the end of a
    /// text.
    std::vector<std::uint64_t> words;
    std::string text;
    std::vector<std::uint32_t> checksums;  ///< Per sample, or empty.
  };
  friend class CatalogueLayout;

  std::uint64_t& last_word(std::size_t field, FieldKind kind);
  Column& column_to_take(std::size_t field, std::uint64_t values);
  bool lies_in_its_object(const ByteRange& range) const;
  void fail(std::string message);
  void give_samples_own_keys();

  const Layout layout_;
  const EtagKind etag_kind_;
  bool has_checksums_ = false;
  std::vector<FieldSpec> fields_;
  std::vector<std::string> classes_;
  std::vector<std::uint64_t> object_sizes_;
  TextPool object_keys_;
  TextPool etags_;
  std::uint64_t samples_ = 0;
  std::optional<TextPool> own_keys_;  ///< Unset while the objects' keys serve.
  std::vector<Column> columns_;
  std::optional<Error> failed_;
};

}  // namespace leat
