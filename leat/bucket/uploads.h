// Objects that come in parts. All of it is on disk, so an upload outlives the
// server, as one outlives a machine of S3's:
//
//   .leat/uploads/<id>/target         bucket, key and headers, a line each
//   .leat/uploads/<id>/00001.<md5>    part 1
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "leat/bucket/folder.h"
#include "leat/bucket/s3_error.h"

namespace leat {

struct UploadPart {
  int number = 0;    ///< From 1 to 10,000.
  std::string etag;  ///< MD5, without quotes.
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;
};

/// The identity of an upload: an id, and the key that the client gives.
struct UploadName {
  std::string id;
  std::string bucket;
  std::string key;
};

/// All that publishing the object of an upload takes.
struct JoinedParts {
  DraftObject draft;
  std::string etag;
  std::string headers;
};

/// Errors, for all that return a Result: kNotFound for an id that is unknown or
/// belongs to another object; else as Folder.
///
/// Threads:  any; two calls for one upload at once leave it whole, but one of
///           them may fail.
/// Lifetime: `folder` outlives it.
class Uploads {
 public:
  static constexpr int kMostParts = 10'000;
  static constexpr std::uint64_t kLeastPartBytes = 5 << 20;  // But the last.

  explicit Uploads(const Folder& folder) : folder_(folder) {}

  /// The id of a new one.
  Result<std::string> create(std::string_view bucket, std::string_view key,
                             std::string_view headers);
  Result<void> put_part(const UploadName& name, int number, DraftObject draft,
                        std::string_view md5_hex);
  /// In the order of their numbers.
  Result<std::vector<UploadPart>> parts(const UploadName& name) const;
  Result<void> abort(const UploadName& name);
  /// Those of a bucket.
  Result<std::vector<UploadName>> of_bucket(std::string_view bucket) const;

  /// Joins the parts that `wanted` names (number and ETag). The upload stays;
  /// abort it once the object is there.
  /// REQUIRES: `wanted` is in ascending order of numbers, and not empty.
  std::variant<JoinedParts, S3Error> join(
      const UploadName& name, const std::vector<UploadPart>& wanted) const;

 private:
  /// The folder of an upload whose target is as `name` says, and its headers.
  struct Place {
    std::string path;
    std::string headers;
  };
  Result<Place> find(const UploadName& name) const;
  std::string root() const { return folder_.work_path() + "/uploads"; }

  const Folder& folder_;
};

}  // namespace leat
