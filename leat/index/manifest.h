// The catalogue of a manifest: a table in which each row is a sample.
#pragma once
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/index/build.h"
#include "leat/store/store.h"

namespace leat {

/// A field of every sample: one value for each row.
struct ManifestColumn {
  FieldSpec field;
  /// For kString: the values. For kBytes: keys of objects, relative to the
  /// prefix; empty if the sample lacks the field.
  std::vector<std::string> texts;
  /// The number of each row's text, if many rows share long texts; empty: each
  /// row has its own.
  std::vector<std::uint32_t> text_numbers;
  std::vector<std::int64_t> ints;  ///< For kInt64: the values.
  std::vector<double> floats;      ///< For kFloat64: the values.
  /// For kBytes: the objects' sizes, if the manifest has them. If empty, the
  /// store is asked.
  std::vector<std::uint64_t> sizes;
  /// For kBytes: the part of the object that holds the value. Give both or
  /// neither; if empty, the value is the whole object.
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint64_t> lengths;

  const std::string& text(std::uint64_t row) const {
    return texts[text_numbers.empty() ? row : text_numbers[row]];
  }
};

/// Rows, stored by columns.
struct Manifest {
  std::uint64_t rows = 0;
  std::vector<ManifestColumn> columns;  ///< At least one of them kBytes.
  std::vector<std::string> classes;     ///< The names that `label` numbers.
  /// The names of samples. If empty, each has the name of the object of its
  /// first byte field.
  std::vector<std::string> names;
};

/// Makes the catalogue of a manifest. Lists nothing; asks the store for the
/// size and ETag of each object once (Store::stat), `options.threads` at a
/// time, unless the manifest has the sizes. If values are parts of objects,
/// these count as shards. Blocks.
///
/// Errors:
///   kInvalidArgument  no byte field; columns, or names, of unequal lengths; a
///                     part that lies outside of its object
///   kNotFound         an object is not there; names the row, the field and it
///   kCancelled        `stop` fired; or any of Store::stat
Result<BuiltCatalogue> build_from_manifest(Store& store,
                                           std::string_view prefix,
                                           const Manifest& manifest,
                                           const IndexOptions& options,
                                           const std::stop_token& stop);

}  // namespace leat
