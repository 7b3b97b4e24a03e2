#include "leat/engine/order_log/reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/base/system_error.h"

namespace leat {
namespace {

std::FILE* open_file(const std::string& path) {
  return std::fopen(path.c_str(), "rbe");
}

}  // namespace

bool is_order_log(const std::string& path) {
  std::FILE* const file = open_file(path);
  if (file == nullptr) return false;
  std::string magic(kOrderLogMagic.size(), '\0');
  const std::size_t got = std::fread(magic.data(), 1, magic.size(), file);
  std::fclose(file);
  return got == magic.size() && magic == kOrderLogMagic;
}

Result<std::unique_ptr<OrderLogReader>> OrderLogReader::open(
    const std::string& path) {
  File file(open_file(path));
  if (file == nullptr) return system_error(errno, "the order log " + path);
  struct stat info = {};
  if (::fstat(::fileno(file.get()), &info) != 0) {
    return system_error(errno, "the order log " + path);
  }
  if (!S_ISREG(info.st_mode)) {
    return corrupt(path + " is not a file");
  }
  std::unique_ptr<OrderLogReader> reader(new OrderLogReader(
      std::move(file), path, static_cast<std::uint64_t>(info.st_size)));
  LEAT_TRY_VOID(reader->read_head());
  return reader;
}

OrderLogReader::OrderLogReader(File file, std::string path, std::uint64_t size)
    : file_(std::move(file)), path_(std::move(path)), size_(size) {}

Error OrderLogReader::damaged(Error why) const {
  return std::move(why).while_doing(
      fmt::format("the order log {} is damaged at byte {}", path_, offset_));
}

Result<void> OrderLogReader::read_head() {
  if (size_ < kOrderLogMagic.size()) {
    return corrupt(path_ + " is not an order log");
  }
  LEAT_TRY_VOID(read(kOrderLogMagic.size()));
  if (as_text(bytes_) != kOrderLogMagic) {
    return corrupt(path_ +
                   " is not an order log: a loader writes one with "
                   "trace={\"order_log\": …}");
  }
  offset_ = kOrderLogMagic.size();
  LEAT_TRY(std::optional<OrderLogEntry> first, read_entry());
  if (!first || !std::holds_alternative<OrderLogHead>(*first)) {
    return damaged(corrupt("it has no whole head"));
  }
  head_ = std::get<OrderLogHead>(*std::move(first));
  return {};
}

Result<std::optional<OrderLogEntry>> OrderLogReader::next() {
  const std::uint64_t at = offset_;
  LEAT_TRY(std::optional<OrderLogEntry> entry, read_entry());
  if (entry && std::holds_alternative<OrderLogHead>(*entry)) {
    offset_ = at;
    return damaged(corrupt("there is a second head"));
  }
  return entry;
}

Result<std::optional<OrderLogEntry>> OrderLogReader::read_entry() {
  if (offset_ == size_ || is_cut_off_) return std::nullopt;
  if (size_ - offset_ < kOrderLogFrame) {
    is_cut_off_ = true;
    return std::nullopt;
  }
  LEAT_TRY_VOID(read(kOrderLogFrame));
  const Result<OrderLogFrame> frame = parse_frame(bytes_);
  if (!frame) return damaged(frame.error());
  if (frame->length > size_ - offset_ - kOrderLogFrame) {
    is_cut_off_ = true;
    return std::nullopt;
  }
  LEAT_TRY_VOID(read(frame->length));
  Result<OrderLogEntry> entry = parse_entry(*frame, bytes_);
  if (!entry) return damaged(std::move(entry).error());
  offset_ += kOrderLogFrame + frame->length;
  return std::optional<OrderLogEntry>(*std::move(entry));
}

Result<void> OrderLogReader::read(std::size_t bytes) {
  bytes_.resize(bytes);
  if (std::fread(bytes_.data(), 1, bytes, file_.get()) == bytes) return {};
  return unavailable("reading the order log {} failed after byte {}", path_,
                     offset_);
}

Result<void> OrderLogReader::seek(std::uint64_t offset) {
  if (::fseeko(file_.get(), static_cast<off_t>(offset), SEEK_SET) != 0) {
    return system_error(errno, "the order log " + path_);
  }
  offset_ = offset;
  is_cut_off_ = false;
  return {};
}

}  // namespace leat
