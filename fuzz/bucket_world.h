// A folder with a bucket in it, for the targets that need one.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <pugixml.hpp>
#include <set>
#include <string>

#include "leat/bucket/bucket_parts.h"

namespace leat::fuzzing {

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// Made once for each process; removed when it ends as it should.
class BucketWorld {
 public:
  static constexpr std::size_t kMostOpen = 16;
  static constexpr std::size_t kMostNames = 1000;

  explicit BucketWorld(const std::set<std::string>& keys)
      : root_(make_root()), parts_(open(root_), kMostOpen, kMostNames) {
    for (const std::string& key : keys) put(key);
  }
  ~BucketWorld() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  BucketParts& parts() { return parts_; }
  void put(const std::string& key) {
    const std::filesystem::path path = root_ / "b" / key;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << key;
  }

 private:
  static std::filesystem::path make_root() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "leat-fuzz-XXXXXX").string();
    require(::mkdtemp(pattern.data()) != nullptr);
    std::filesystem::create_directories(pattern + "/b");
    return pattern;
  }
  static Folder open(const std::filesystem::path& root) {
    auto folder = Folder::open(root.string());
    require(bool(folder));
    return *std::move(folder);
  }

  const std::filesystem::path root_;
  BucketParts parts_;
};

/// The document of a reply, which must be one.
inline pugi::xml_document parsed(const Reply& reply) {
  pugi::xml_document document;
  require(
      bool(document.load_buffer(reply.body.data(), reply.body.size(),
                                pugi::parse_default | pugi::parse_ws_pcdata)));
  return document;
}

}  // namespace leat::fuzzing
