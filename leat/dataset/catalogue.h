// The samples and objects of a dataset, as a view of bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/hash.h"
#include "leat/base/ids.h"
#include "leat/base/result.h"

namespace leat {

/// The type of a field's values.
enum class FieldKind : std::uint8_t {
  kBytes,    ///< A range of an object, fetched when wanted.
  kInt64,    ///< A number kept in the catalogue.
  kFloat64,  ///< A number kept in the catalogue.
  kString,   ///< A short text kept in the catalogue.
};

/// "bytes", "int64", "float64" or "string": the names users see.
std::string_view to_string(FieldKind kind);

struct FieldSpec {
  std::string name;
  FieldKind kind = FieldKind::kBytes;
  friend bool operator==(const FieldSpec&, const FieldSpec&) = default;
};

/// The place of a field's bytes in one sample. At most 2^48 bytes from start to
/// end, packed into 16 bytes in the file.
struct ByteRange {
  static constexpr std::uint32_t kMissing = 0xffffffff;
  ObjectIndex object{kMissing};
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;

  /// True if the sample has no such field.
  bool is_missing() const { return object.value == kMissing; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// How samples lie in objects; the default shuffle follows from it.
enum class Layout : std::uint8_t {
  kObjects,  ///< Each sample is its own object: shuffle fully.
  kShards,   ///< Many samples in each object: shuffle in blocks.
};

/// The kind of store that an object's ETag came from. An ETag from another kind
/// tells nothing about the version; then only sizes can be compared.
enum class EtagKind : std::uint8_t {
  kNone,   ///< There are no ETags.
  kHttp,   ///< An HTTP server: s3, http and https alike.
  kFile,   ///< A file system.
  kOther,  ///< Anything else, such as a store in memory.
};

/// An object that holds samples.
struct ObjectView {
  /// Relative to the dataset's prefix, so that one catalogue serves
  /// s3://bucket/prefix and http://host/x/prefix alike; see key_in_store().
  std::string_view key = {};
  std::string_view etag = {};  ///< Empty if there is none. See etag_kind().
  std::uint64_t size_bytes = 0;
};

/// The key of an object within its store: `prefix`, a slash, `relative_key`.
std::string key_in_store(std::string_view prefix,
                         std::string_view relative_key);

struct CatalogueTables;  // The tables that open() found, for the reader alone.
struct CatalogueColumn;

/// The parts that Catalogue::open() reads to find damage.
enum class CatalogueChecks : std::uint8_t {
  kAll,  ///< Every byte: a checksum for each section, every end and range.
  /// The header, the table, the names of fields and classes. Every other value
  /// is bounded where it is used: damage causes wrong values, never access out
  /// of bounds. For files that this machine wrote completely and that are too
  /// large to read before the first batch.
  kStructure,
};

/// The samples of a dataset: a table of named fields, and the objects that hold
/// their bytes. docs/reference/catalogue.md has the format, byte by byte.
///
/// A view: it reads the given span and copies only the names of fields and
/// classes; a joined one (derive.h) reads its parts. open() checks the bytes as
/// far as the caller asks; no accessor can reach outside them, whatever the
/// file contains.
///
/// Threads:  any; it never changes.
/// Lifetime: `owner` keeps the span alive (a mapping of `index/`, a Buffer).
class Catalogue {
 public:
  /// Checks `file` and makes it readable.
  ///
  /// Errors:
  ///   kCorrupt          cut short, a CRC that does not match, a number that
  ///                     points outside; the message says which section
  ///   kInvalidArgument  not a catalogue, or of another version than this one
  static Result<Catalogue> open(std::span<const std::byte> file,
                                std::shared_ptr<const void> owner,
                                CatalogueChecks checks = CatalogueChecks::kAll);

  /// The same for a file in memory, which it keeps.
  static Result<Catalogue> open(Buffer file);

  static constexpr std::size_t kHeaderBytes = 64;
  /// The length of a file that begins with these bytes, as they say. Only that
  /// it is a catalogue, and the version, are checked. Errors: as open()
  static Result<std::uint64_t> length_of(std::span<const std::byte> start);

  std::uint64_t samples() const;
  std::uint64_t objects() const;
  Layout layout() const;
  const std::vector<FieldSpec>& fields() const;
  /// The names of the classes that the field `label` numbers; empty if none.
  const std::vector<std::string>& classes() const;

  /// The kind of store that the objects' ETags came from.
  EtagKind etag_kind() const;
  /// True if checksums are kept of some samples.
  bool has_checksums() const;

  /// The sample's name: the object's key if each object is a sample; within a
  /// shard, WebDataset's `__key__`.
  /// REQUIRES: sample < samples().
  std::string_view key(SampleId sample) const;

  /// REQUIRES: sample < samples(), field < fields().size() and of that kind.
  ByteRange range(std::size_t field, SampleId sample) const;
  /// The CRC32C of a byte field's value; nullopt if none is kept.
  /// REQUIRES: as range().
  std::optional<std::uint32_t> checksum(std::size_t field,
                                        SampleId sample) const;
  std::int64_t int64(std::size_t field, SampleId sample) const;
  double float64(std::size_t field, SampleId sample) const;
  std::string_view string(std::size_t field, SampleId sample) const;

  /// REQUIRES: object < objects().
  ObjectView object(ObjectIndex object) const;

  /// The position of the field with this name, or fields().size().
  std::size_t field_index(std::string_view name) const;

  /// The sum of the lengths of all byte fields of all samples, at most 2^64-1.
  /// Reads all ranges unless open() has.
  std::uint64_t total_bytes() const;

  /// The pieces of the usual length that shards are cut into (pieces.h): the
  /// first sample of each, and the number of all samples. Empty if the file
  /// does not say it.
  std::vector<std::uint64_t> pieces() const;

  /// Identifies the data: equal for equal names, sizes, ranges and columns in
  /// any store (ETags and the prefix are left out), so a state saved on one
  /// store resumes on another.
  Hash128 digest() const;

 private:
  friend struct CatalogueTables;
  explicit Catalogue(std::shared_ptr<const CatalogueTables> tables);
  const CatalogueColumn& column(std::size_t field, FieldKind kind,
                                SampleId sample) const;

  std::shared_ptr<const CatalogueTables> tables_;
};

}  // namespace leat
