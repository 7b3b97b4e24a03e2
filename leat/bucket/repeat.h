// One file that stands for many objects: listings larger than a disk holds.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

/// Shows the file "data/train/x.bin" as the objects x-00000000.bin,
/// x-00000001.bin, … of data/train, each with all of its bytes. The folder
/// shows no other objects.
///
/// Threads: any; it never changes.
class Repeat {
 public:
  static constexpr std::uint64_t kMostObjects = 100'000'000;

  /// Reads "data/train/x.bin:10000000"; the file is below `root`.
  ///
  /// Errors: kInvalidArgument if it is not FILE:COUNT, or COUNT is not between
  /// 1 and kMostObjects
  static Result<Repeat> parse(std::string_view text, std::string_view root);

  std::uint64_t count() const { return count_; }
  /// The folder on disk that the objects are in.
  std::string_view folder() const {
    return std::string_view(stem_).substr(0, stem_.rfind('/'));
  }
  /// The name of object `i` within its folder.
  std::string name(std::uint64_t i) const;
  /// The file that stands for the object at `path`; `path` itself if it is none
  /// of these.
  std::string file_of(std::string path) const;
  /// The file that stands for all of them.
  std::string source() const { return stem_ + ending_; }

 private:
  std::string stem_;    ///< "/root/data/train/x"
  std::string ending_;  ///< ".bin"
  std::uint64_t count_ = 0;
};

}  // namespace leat
