#include "leat/index/job_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <random>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/hash.h"
#include "leat/base/pause.h"
#include "leat/index/scan_entries.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

constexpr char kListingLetter = 'L';
constexpr char kNoShardsLetter = 'N';
constexpr char kShardLetter = 'S';
constexpr char kFailureLetter = 'F';
constexpr char kTooManyLetter = 'T';

/// No other process has it, of the same rank either.
std::string name_of_process(std::uint32_t rank) {
  std::random_device random;
  return fmt::format("{} {:08x}{:08x}", rank, random(), random());
}

/// Up to this many ranks, each looks as often as a single one does.
constexpr std::uint32_t kRanksALook = 64;

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failed] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

std::span<const std::byte> behind(std::size_t head, const std::string& text) {
  return as_bytes(std::string_view(text).substr(head));
}

}  // namespace

JobScan::JobScan(std::shared_ptr<ScanBoard> board, std::string_view place,
                 JobScanTimes times)
    : board_(std::move(board)),
      times_(times),
      rank_(board_->rank()),
      opened_at_(clock_.now()),
      opening_(board_->begin(place)) {}

JobScan::~JobScan() { leave(); }

void JobScan::leave() {
  if (has_left_.exchange(true)) return;
  // A rank that beats and tells nothing would be waited for without end.
  (void)board_->put(name("left", rank_.rank), "");
  board_->end(opening_, shards_);
}

std::string JobScan::name(std::string_view kind, std::uint64_t number) const {
  return fmt::format("{}/{}/{}", opening_, kind, number);
}

void JobScan::lose(const Error& error) {
  if (has_left_) return;
  leave();
  log_warning(
      "this rank indexes the shards of other ranks for itself: the job's store "
      "does not answer: " +
      error.message());
}

Result<JobScan::Listed> JobScan::take_listing(const std::stop_token& stop) {
  const Result<bool> is_first =
      board_->claim(opening_ + "/who", name_of_process(rank_.rank));
  if (!is_first) {
    lose(is_first.error());
    return Listed{};
  }
  if (*is_first) return Listed{.who = Listed::Who::kThis, .objects = {}};
  const auto who = board_->text(opening_ + "/who");
  const auto lister = who && *who
                          ? number_of((*who)->substr(0, (*who)->find(' ')))
                          : std::nullopt;
  // They may be texts of an earlier opening, or of an earlier process.
  if (!lister || *lister == rank_.rank) return Listed{};
  const auto listing_rank = static_cast<std::uint32_t>(*lister);
  if (const auto left = has_left(listing_rank); !left || *left) return Listed{};
  for (std::size_t looks = 0; !has_left_; ++looks) {
    const auto told = board_->get(opening_ + "/listing");
    if (told && *told) {
      const std::string& text = **told;
      if (text.empty() || text[0] != kListingLetter) return Listed{};
      auto objects = unpack_listing(behind(1, text));
      if (!objects) return Listed{};
      take_hash(text, objects->data.size());
      return Listed{.who = Listed::Who::kOther, .objects = *std::move(objects)};
    }
    if (!told) lose(told.error());
    if (is_gone(listing_rank)) break;
    if (!pause_for(pause(looks), stop)) {
      return Error(ErrorCode::kCancelled, "stopped waiting for a listing");
    }
  }
  return Listed{};
}

bool JobScan::tell_listing(const SortedObjects* objects) {
  const std::string bytes = objects == nullptr
                                ? std::string(1, kNoShardsLetter)
                                : kListingLetter + pack(*objects);
  if (objects != nullptr) take_hash(bytes, objects->data.size());
  const std::string at = opening_ + "/listing";
  Result<bool> told = board_->put(at, bytes);
  const bool is_told = told && *told;
  if (told && !*told) told = board_->put(at, std::string(1, kNoShardsLetter));
  if (!told) lose(told.error());
  return is_told;
}

void JobScan::take_hash(std::string_view listing, std::size_t shards) {
  listing_ = xxh3_128(as_bytes(listing)).hex();
  shards_ = shards;
}

void JobScan::tell_entry(std::size_t shard, char letter,
                         std::string_view bytes) {
  if (has_left_) return;
  const std::string at = name("shard", shard);
  Result<bool> told =
      board_->put(at, fmt::format("{}{}{}", letter, listing_, bytes));
  if (told && !*told) {
    told = board_->put(at, std::string(1, kTooManyLetter));
    if (!std::exchange(is_too_much_, true)) {
      log_warning(
          "a shard has more members than may be written to the job's store: "
          "each rank indexes this shard for itself, and others like it, which "
          "is slow; run `leat index` before the job");
    }
  }
  if (!told) lose(told.error());
}

void JobScan::tell(std::size_t shard, const ScannedShard& scanned) {
  tell_entry(shard, kShardLetter, pack(scanned));
}

void JobScan::tell(std::size_t shard, const Error& error) {
  tell_entry(shard, kFailureLetter, pack(error));
}

JobScan::Sight JobScan::look_at(std::size_t shard, ScanEntry& entry) {
  const auto rank = static_cast<std::uint32_t>(shard % rank_.world_size);
  std::optional<std::string> told;
  // A rank may have told it just before it left.
  for (const bool is_last : {false, true}) {
    if (has_left_) return Sight::kLeft;
    auto read = board_->get(name("shard", shard));
    if (!read) {
      lose(read.error());
      return Sight::kLeft;
    }
    told = *std::move(read);
    if (told) break;
    if (is_last) return Sight::kLeft;
    if (!is_gone(rank)) return Sight::kComing;
  }
  const std::string& text = *told;
  const std::size_t head = 1 + listing_.size();
  if (text.size() < head || text.compare(1, listing_.size(), listing_) != 0) {
    return Sight::kLeft;
  }
  const char letter = text[0];
  if (letter == kShardLetter) {
    auto scanned = unpack_shard(behind(head, text));
    if (!scanned) return Sight::kLeft;
    entry.kind = ScanEntry::Kind::kShard;
    entry.shard = *std::move(scanned);
    return Sight::kThere;
  }
  if (letter == kFailureLetter) {
    auto error = unpack_failure(behind(head, text));
    if (!error) return Sight::kLeft;
    entry.kind = ScanEntry::Kind::kFailed;
    entry.error = *std::move(error);
    return Sight::kThere;
  }
  return Sight::kLeft;
}

Result<bool> JobScan::has_left(std::uint32_t rank) {
  LEAT_TRY(const auto left, board_->get(name("left", rank)));
  return left.has_value();
}

/// Whether a rank has left, or gives no sign any more.
bool JobScan::is_gone(std::uint32_t rank) {
  Other& other = others_[rank];
  const TimePoint now = clock_.now();
  if (other.is_gone || now - other.looked_at < times_.look) {
    return other.is_gone;
  }
  other.looked_at = now;
  const auto left = has_left(rank);
  const auto beat = board_->text(name("beat", rank));
  if (!left || !beat) {
    lose(left ? beat.error() : left.error());
    return true;
  }
  if (*beat && **beat != other.beat) {
    other.beat = **beat;
    other.beat_at = now;
  }
  const bool is_silent = other.beat.empty()
                             ? now - opened_at_ > times_.to_come
                             : now - other.beat_at > times_.to_die;
  if (is_silent && !*left) {
    log_warning(fmt::format(
        "rank {} has given no sign for {} s: this rank indexes its shards for "
        "itself",
        rank,
        std::chrono::floor<std::chrono::seconds>(
            now - (other.beat.empty() ? opened_at_ : other.beat_at))
            .count()));
  }
  other.is_gone = *left || is_silent;
  return other.is_gone;
}

Nanoseconds JobScan::pause(std::size_t looks) const {
  const auto doubled = times_.first_pause *
                       (std::int64_t{1} << std::min<std::size_t>(looks, 16));
  // All ranks ask one store.
  const auto ranks = std::max<std::uint32_t>(1, rank_.world_size / kRanksALook);
  return std::min<Nanoseconds>(doubled, times_.longest_pause) * ranks;
}

void JobScan::ask_for(std::size_t shard) {
  if (!is_waiting_ || has_left_) return;
  const auto rank = static_cast<std::uint32_t>(shard % rank_.world_size);
  Other& other = others_[rank];
  const TimePoint now = clock_.now();
  if (other.asked_at && now - *other.asked_at < times_.ask) return;
  other.asked_at = now;
  const auto said = board_->put(name("awaited", rank), std::to_string(shard));
  if (!said) lose(said.error());
}

bool JobScan::is_awaited() {
  if (has_left_) return false;
  const auto asked = board_->get(name("awaited", rank_.rank));
  if (!asked) {
    lose(asked.error());
    return false;
  }
  const auto shard = *asked ? number_of(**asked) : std::nullopt;
  return shard && *shard >= shard_;
}

}  // namespace leat
