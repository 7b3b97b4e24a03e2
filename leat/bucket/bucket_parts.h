// The parts that answers to requests are made from.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "leat/bucket/folder.h"
#include "leat/bucket/folder_entries.h"
#include "leat/bucket/object_cache.h"
#include "leat/bucket/path_locks.h"
#include "leat/bucket/s3_error.h"
#include "leat/bucket/s3_request.h"
#include "leat/bucket/uploads.h"

namespace leat {

/// The state of a bucket server that is not about HTTP. Threads: any.
struct BucketParts {
  BucketParts(Folder its_folder, std::size_t most_open, std::size_t most_names,
              bool its_checksums)
      : gives_checksums(its_checksums),
        folder(std::move(its_folder)),
        objects(most_open),
        folders(
            most_names, folder.repeat(),
            [this](const std::string& path) { return folder.is_inside(path); }),
        uploads(folder) {}
  BucketParts(const BucketParts&) = delete;
  BucketParts& operator=(const BucketParts&) = delete;

  /// Replies have the checksum of a whole object, if they are asked for it.
  const bool gives_checksums;
  const Folder folder;
  ObjectCache objects;
  FolderCache folders;
  /// Those of objects' paths. Held while a write looks at the object and
  /// publishes, which is a few calls to the file system and no bytes.
  PathLocks writes;
  Uploads uploads;
};

/// Why there is no such bucket, if there is none.
std::optional<S3Error> check_bucket(const BucketParts& parts,
                                    std::string_view bucket);

/// The reply to a client for an `error` of reading or writing `bucket` and a
/// key.
S3Error read_failure(const BucketParts& parts, std::string_view bucket,
                     const Error& error);
S3Error write_failure(const Error& error);

/// An XML document as a reply.
Reply xml_reply(std::string_view inside);

/// `text` as a listing shows it: percent-encoded if the query says
/// encoding-type=url, else escaped for XML.
std::string shown(std::string_view text, const S3Target& target);

}  // namespace leat
