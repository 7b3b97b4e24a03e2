#include "leat/index/job_listing.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "leat/base/hash.h"
#include "leat/dataset/catalogue.h"
#include "leat/index/build.h"
#include "leat/index/catalogue_file.h"
#include "leat/index/catalogue_search.h"
#include "leat/index/freshness.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

using MaybeOpened = std::optional<OpenedCatalogue>;

/// Nullopt if the file cannot be read whole.
std::optional<Buffer> bytes_of_file(const std::string& path) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed) return std::nullopt;
  Buffer bytes(size);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()),
            static_cast<std::streamsize>(size));
  if (file.gcount() != static_cast<std::streamsize>(size)) return std::nullopt;
  return bytes;
}

bool is_kept(const PostedCatalogue& posted, const std::string& path) {
  std::error_code failed;
  if (std::filesystem::file_size(path, failed) != posted.size_bytes || failed) {
    return false;
  }
  const auto bytes = bytes_of_file(path);
  return bytes && xxh3_128(bytes->span()).hex() == posted.hash;
}

void set_written_at(const std::string& path, std::chrono::sys_seconds time) {
  std::error_code ignored;  // Its age is then wrong.
  std::filesystem::last_write_time(
      path, std::chrono::file_clock::from_sys(time), ignored);
}

/// Replaces the kept catalogue. Without a file the result lives in memory.
Result<OpenedCatalogue> keep_received(Buffer bytes,
                                      const PostedCatalogue& posted,
                                      const std::optional<std::string>& path) {
  const auto owner = std::make_shared<const Buffer>(std::move(bytes));
  LEAT_TRY(Catalogue catalogue, Catalogue::open(owner->span(), owner));
  OpenedCatalogue opened;
  opened.source = CatalogueSource::kCache;
  opened.listed_at = posted.listed_at;
  opened.catalogue = std::make_shared<const Catalogue>(std::move(catalogue));
  if (path) {
    Result<MaybeOpened> former = find_cached(path, Launch{}, Refresh::never());
    if (former && *former) keep_earlier(path, **former);
    if (write_catalogue(*path, owner->span())) {
      set_written_at(*path, posted.listed_at);
      opened.location = opened.file = *path;
    }
  }
  return opened;
}

}  // namespace

JobListing::JobListing(ListingBoard* board, const Store& store,
                       std::string_view place)
    : board_(etag_kind_of(store) == EtagKind::kFile ? nullptr : board) {
  if (board_ != nullptr) opening_ = board_->begin(place);
}

JobListing::~JobListing() {
  if (is_turn_) board_->give_up(opening_);
}

Result<MaybeOpened> JobListing::take(Store& store, std::string_view prefix,
                                     const std::optional<std::string>& path,
                                     const std::stop_token& stop) {
  if (board_ == nullptr || std::exchange(has_asked_, true)) {
    return MaybeOpened();
  }
  LEAT_TRY(const ListingTurn turn, board_->take_turn(opening_, stop));
  is_turn_ = turn.who == ListingTurn::Who::kThis;
  if (turn.who != ListingTurn::Who::kOther) return MaybeOpened();
  Result<MaybeOpened> received = receive(turn.posted, path);
  if (!received) {
    log_warning(fmt::format(
        "this node lists {} for itself: another node's listing was not "
        "received: {}",
        store.url_of(prefix), received.error().message()));
    return MaybeOpened();
  }
  // The other node's credentials are not this one's.
  LEAT_TRY_VOID(check_access(store, prefix, *(*received)->catalogue, stop));
  return received;
}

Result<MaybeOpened> JobListing::receive(
    const PostedCatalogue& posted, const std::optional<std::string>& path) {
  if (path && is_kept(posted, *path)) {
    set_written_at(*path, posted.listed_at);
    LEAT_TRY(MaybeOpened kept, find_cached(path, Launch{}, Refresh::never()));
    if (kept) return kept;  // Else it is not trusted, or gone by now.
  }
  LEAT_TRY(Buffer bytes, board_->fetch(opening_));
  if (bytes.size() != posted.size_bytes ||
      xxh3_128(bytes.span()).hex() != posted.hash) {
    return Error(ErrorCode::kCorrupt, "its bytes are not those that were sent");
  }
  LEAT_TRY(OpenedCatalogue opened,
           keep_received(std::move(bytes), posted, path));
  return MaybeOpened(std::move(opened));
}

void JobListing::give(const OpenedCatalogue& opened) {
  if (!is_turn_) return;
  const auto bytes =
      opened.file.empty() ? std::nullopt : bytes_of_file(opened.file);
  if (!bytes) return;  // The destructor gives the turn up.
  is_turn_ = false;
  board_->post(opening_,
               {.hash = xxh3_128(bytes->span()).hex(),
                .size_bytes = bytes->size(),
                .listed_at = opened.listed_at},
               bytes->span());
}

}  // namespace leat
