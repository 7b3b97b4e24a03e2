// Reads an order log.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/engine/order_log/entries.h"

namespace leat {

/// The entries of one file, one after another. Holds one of them at a time.
///
/// Threads: one at a time.
class OrderLogReader {
 public:
  /// Reads the head. Blocks, as do all calls.
  ///
  /// Errors:
  ///   kNotFound, kPermissionDenied  as open
  ///   kCorrupt                      not an order log; cut off within its head
  static Result<std::unique_ptr<OrderLogReader>> open(const std::string& path);

  const std::string& path() const { return path_; }
  const OrderLogHead& head() const { return head_; }

  /// The next batch or end; nullopt at the end of the file.
  ///
  /// Errors: kCorrupt, which names the file and the offset; kUnavailable
  Result<std::optional<OrderLogEntry>> next();
  /// Whether the file ends within an entry.
  bool is_cut_off() const { return is_cut_off_; }

  /// The offset of the entry that next() will return.
  std::uint64_t offset() const { return offset_; }
  /// REQUIRES: an earlier offset(). Errors: kUnavailable
  Result<void> seek(std::uint64_t offset);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  OrderLogReader(File file, std::string path, std::uint64_t size);
  Result<void> read_head();
  /// Nullopt at the end; also, after setting is_cut_off_, within an entry.
  Result<std::optional<OrderLogEntry>> read_entry();
  Result<void> read(std::size_t bytes);
  Error damaged(Error why) const;

  const File file_;
  const std::string path_;
  const std::uint64_t size_;
  std::uint64_t offset_ = 0;
  OrderLogHead head_;
  std::vector<std::byte> bytes_;
  bool is_cut_off_ = false;
};

/// Whether a file begins as an order log does.
bool is_order_log(const std::string& path);

}  // namespace leat
