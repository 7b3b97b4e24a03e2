// Makes the catalogue of a table of samples from rows that come one by one.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/dataset/catalogue_writer.h"
#include "leat/index/build.h"
#include "leat/index/object_keys.h"
#include "leat/store/store.h"

namespace leat {

/// A field of the samples, and what is known of its values.
struct ManifestField {
  FieldSpec spec;
  bool has_sizes = false;  ///< kBytes: the table has the objects' sizes.
  bool has_parts = false;  ///< kBytes: the values are parts of objects.
};

/// The bytes of a field of a row.
struct ManifestValue {
  std::uint32_t place = 0;    ///< The number of the object's place, below 256.
  std::string_view key = {};  ///< Empty: the row lacks the field.
  std::uint64_t size_bytes = 0;    ///< If the field has sizes.
  std::uint64_t offset = 0;        ///< If it has parts.
  std::uint64_t length_bytes = 0;  ///< Likewise.
};

/// Collects the rows of a table as narrow columns, and makes their catalogue.
///
/// Values of a field come in the order of the rows. Objects are numbered in the
/// order in which add_value() hears of them.
///
/// A row that names one new object, with its size, takes 21 bytes beside the
/// key, and 8 more for each number.
///
/// Threads: one at a time.
class ManifestBuilder {
 public:
  explicit ManifestBuilder(std::vector<ManifestField> fields);

  void set_classes(std::vector<std::string> classes) {
    classes_ = std::move(classes);
  }
  /// The next value of a field. REQUIRES: the field has that kind.
  void add_value(std::size_t field, const ManifestValue& value);
  void add_int64(std::size_t field, std::int64_t value);
  void add_float64(std::size_t field, double value);
  void add_string(std::size_t field, std::string_view value);
  /// The name of the next sample. If none is added, each has the name of the
  /// object of its first field of bytes.
  void add_name(std::string_view name) { names_.add(name); }
  /// Each value n of the field becomes `numbers[n]`.
  /// REQUIRES: its values are below their count.
  void renumber(std::size_t field, std::span<const std::int64_t> numbers);

  /// The catalogue. Lists nothing; asks the store for the size and ETag of each
  /// object once (Store::stat), `options.threads` at a time, unless the table
  /// has the sizes. With several places, keys begin with joined_prefix(). If
  /// values are parts of objects, these count as shards. Blocks.
  ///
  /// Errors: as build_from_manifest()
  Result<BuiltCatalogue> finish(Store& store, std::string_view prefix,
                                bool has_several_places,
                                const IndexOptions& options,
                                const std::stop_token& stop) &&;

 private:
  struct Column {
    ManifestField field;
    std::vector<std::uint32_t> objects;  ///< Or ByteRange::kMissing.
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint64_t> lengths;
    std::vector<std::uint64_t> words;  ///< Numbers, by their bits.
    TextPool texts;
  };

  std::uint64_t values_of(const Column& column) const;
  void note_two_sizes(const Column& column, std::uint32_t object,
                      const ManifestValue& value);
  Result<void> check() const;
  const Column* first_bytes() const;
  std::string where(std::size_t object) const;
  Result<TextPool> ask_for_sizes(Store& store, std::string_view prefix,
                                 bool has_several_places, bool keeps_etags,
                                 const IndexOptions& options,
                                 const std::stop_token& stop);
  std::string name_in_store(std::size_t object, bool has_several_places) const;
  bool are_named_as_objects(bool has_several_places) const;
  TextPool sample_names();
  void fill(CatalogueWriter& writer, std::size_t field);

  std::vector<Column> columns_;
  std::vector<std::string> classes_;
  TextPool names_;
  ObjectKeys objects_;
  std::vector<std::uint64_t> sizes_;  ///< The objects' sizes, if all are known.
  bool has_all_sizes_ = true;
  std::string two_sizes_;  ///< Names the first object that has two; or empty.
  bool is_full_ = false;
};

}  // namespace leat
