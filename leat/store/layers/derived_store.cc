// An object is known from the first read that asks for it on. It waits in
// `queue_` for memory, then for its bytes, then for a thread that makes it;
// then it stays in `there_` until its memory is wanted. Each read that waits is
// answered once, by whoever claims it first: the one who made the object, or a
// stop.

#include "leat/store/layers/derived_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// Notes are small and wanted often, so this much of them is kept.
constexpr std::uint64_t kMostNotesBytes = 64 << 20;
/// How many that were let go are remembered, and how many of these have to come
/// back until somebody should know.
constexpr std::size_t kRemembered = 64;
constexpr std::size_t kTooOften = 64;

Error cancelled() {
  return Error(ErrorCode::kCancelled, "reading was stopped");
}

/// The reads of a range: several if it is more than twice `part_bytes`.
std::vector<DerivedKey::Range> parts_of(const DerivedKey::Range& range,
                                        std::uint64_t part_bytes) {
  const std::uint64_t parts =
      std::max<std::uint64_t>(range.length_bytes / part_bytes, 1);
  const std::uint64_t part = (range.length_bytes + parts - 1) / parts;
  std::vector<DerivedKey::Range> reads;
  for (std::uint64_t begin = 0; begin < range.length_bytes; begin += part) {
    reads.push_back({range.source, range.etag, range.offset + begin,
                     std::min(part, range.length_bytes - begin)});
  }
  return reads;
}

/// The part, for a message: its first line.
std::string_view part_said(const DerivedKey& key) {
  return std::string_view(key.part).substr(0, key.part.find('\n'));
}

/// Names notes: those of one version of one object are the same.
std::string notes_name(const DerivedKey& key) {
  return fmt::format("{};{};{};{}", key.notes_offset, key.notes_bytes, key.etag,
                     key.source);
}

}  // namespace

/// A read that waits.
struct DerivedStore::Wait {
  struct OnStop {
    DerivedStore* store;
    std::weak_ptr<Wait> wait;
    void operator()() const {
      if (const auto still_there = wait.lock()) {
        store->stopped_waiting(still_there);
      }
    }
  };

  /// True for the one who is to answer it.
  bool claim() { return !is_claimed.exchange(true); }

  std::uint64_t offset = 0;
  std::span<std::byte> into;
  ReadDone done;
  std::weak_ptr<Made> made;
  std::atomic<bool> is_claimed = false;
  std::optional<std::stop_callback<OnStop>> on_stop;
};

struct DerivedStore::Made {
  /// The memory that it takes while it is made.
  std::uint64_t cost() const { return key.source_bytes() + key.size_bytes; }

  std::string name;
  DerivedKey key;
  // Written by the reads and by who makes it, then never again.
  Buffer source;
  std::shared_ptr<Buffer> notes;
  Buffer bytes;
  // Guarded by the store's mutex.
  enum class State { kWaiting, kComing, kThere } state = State::kWaiting;
  std::vector<std::shared_ptr<Wait>> waiting;
  std::size_t reads_left = 0;
  std::optional<Error> error;
  std::list<MadeRef>::iterator place;
};

DerivedStore::DerivedStore(std::unique_ptr<Store> inner,
                           std::shared_ptr<const Derivation> derivation,
                           DerivedStoreOptions options)
    : StoreWrapper(std::move(inner)),
      derivation_(std::move(derivation)),
      options_(options),
      executor_("leat-derive", options.threads) {}

DerivedStore::~DerivedStore() {
  stop_.request_stop();
  MutexLock lock(mutex_);
  queue_.clear();
  changed_.wait(lock, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return under_way_ == 0;
  });
}

void DerivedStore::read(ReadRequest request, std::stop_token stop,
                        ReadDone done) {
  auto parsed = DerivedKey::parse(request.object.key);
  if (!parsed) return done(std::move(parsed).error());
  if (!*parsed) {
    return inner_->read(std::move(request), std::move(stop), std::move(done));
  }
  DerivedKey& key = **parsed;
  if (request.into.empty() || request.offset > key.size_bytes ||
      request.into.size() > key.size_bytes - request.offset) {
    return done(invalid("{}: no bytes [{}, {}) of {}",
                        url_of(request.object.key), request.offset,
                        request.offset + request.into.size(), key.size_bytes));
  }
  auto wait = std::make_shared<Wait>();
  wait->offset = request.offset;
  wait->into = request.into;
  wait->done = std::move(done);
  MadeRef there;
  {
    const MutexLock lock(mutex_);
    MadeRef& made = known_[request.object.key];
    if (made == nullptr) {
      made = std::make_shared<Made>();
      made->name = request.object.key;
      made->key = std::move(key);
      queue_.push_back(made);
    }
    if (made->state == Made::State::kThere) {
      there_.splice(there_.end(), there_, made->place);
      there = made;
    } else {
      made->waiting.push_back(wait);
      wait->made = made;
    }
  }
  if (there != nullptr) {
    std::memcpy(wait->into.data(), there->bytes.data() + wait->offset,
                wait->into.size());
    return wait->done({});
  }
  // May run at once.
  wait->on_stop.emplace(std::move(stop), Wait::OnStop{this, wait});
  begin_what_fits();
}

void DerivedStore::stopped_waiting(const std::shared_ptr<Wait>& wait) {
  if (!wait->claim()) return;
  if (const MadeRef made = wait->made.lock()) {
    const MutexLock lock(mutex_);
    std::erase(made->waiting, wait);
    if (made->waiting.empty() && made->state == Made::State::kWaiting) {
      std::erase(queue_, made);
      known_.erase(made->name);
    }
  }
  wait->done(cancelled());
}

/// The next that memory is there for, in the order of asking.
DerivedStore::MadeRef DerivedStore::take_next() {
  if (queue_.empty()) return nullptr;
  const std::uint64_t cost = queue_.front()->cost();
  while (held_bytes_ != 0 && held_bytes_ + cost > options_.most_bytes) {
    if (there_.empty()) return nullptr;
    let_go_oldest();
  }
  MadeRef made = std::move(queue_.front());
  queue_.pop_front();
  held_bytes_ += cost;
  ++under_way_;
  made->state = Made::State::kComing;
  return made;
}

void DerivedStore::let_go_oldest() {
  const MadeRef oldest = std::move(there_.front());
  there_.pop_front();
  held_bytes_ -= oldest->key.size_bytes;
  let_go_.push_back(oldest->name);
  if (let_go_.size() > kRemembered) let_go_.pop_front();
  known_.erase(oldest->name);
}

/// Counts those that were let go a short while ago; true once of many.
bool DerivedStore::comes_back(const std::string& key) {
  const auto found = std::ranges::find(let_go_, key);
  if (found == let_go_.end()) return false;
  let_go_.erase(found);
  return ++again_ == kTooOften;
}

void DerivedStore::begin_what_fits() {
  while (true) {
    MadeRef made;
    bool is_too_often = false;
    {
      const MutexLock lock(mutex_);
      made = take_next();
      if (made == nullptr) return;
      is_too_often = comes_back(made->name);
    }
    if (is_too_often) {
      log_warning(fmt::format(
          "{}: the same row groups are read again and again, as {} hold too "
          "few of them for this order; give a cache=, a smaller "
          "window= of the shuffle, shuffle=\"stream\" or more memory=",
          inner_->url_of(made->key.source), format_bytes(options_.most_bytes)));
    }
    begin(made);
  }
}

/// Takes the notes that are held; true if they have to be read.
bool DerivedStore::take_notes(Made& made) {
  if (made.key.notes_bytes == 0) return false;
  const MutexLock lock(mutex_);
  const auto found = notes_.find(notes_name(made.key));
  if (found == notes_.end()) return true;
  made.notes = found->second;
  return false;
}

void DerivedStore::begin(const MadeRef& made) {
  const DerivedKey& key = made->key;
  made->source = Buffer(key.source_bytes());
  std::vector<DerivedKey::Range> reads =
      parts_of({{}, {}, key.offset, key.length_bytes}, options_.part_bytes);
  for (const DerivedKey::Range& range : key.also) {
    std::ranges::move(parts_of(range, options_.part_bytes),
                      std::back_inserter(reads));
  }
  const bool needs_notes = take_notes(*made);
  {
    const MutexLock lock(mutex_);
    made->reads_left = reads.size() + (needs_notes ? 1 : 0);
  }
  const auto send = [&](const DerivedKey::Range& range,
                        std::span<std::byte> into) {
    const bool is_own = range.source.empty();
    ReadRequest request;
    request.object = {.key = is_own ? key.source : range.source,
                      .etag = is_own ? key.etag : range.etag};
    request.offset = range.offset;
    request.into = into;
    inner_->read(
        std::move(request), stop_.get_token(),
        [this, made](Result<void> result) { arrive(made, std::move(result)); });
  };
  if (needs_notes) {
    made->notes = std::make_shared<Buffer>(key.notes_bytes);
    send({{}, {}, key.notes_offset, key.notes_bytes}, made->notes->span());
  }
  std::uint64_t place = 0;
  for (const DerivedKey::Range& range : reads) {
    send(range, made->source.span().subspan(place, range.length_bytes));
    place += range.length_bytes;
  }
}

void DerivedStore::arrive(const MadeRef& made, Result<void> result) {
  {
    const MutexLock lock(mutex_);
    if (!result && !made->error) made->error = std::move(result).error();
    if (--made->reads_left != 0) return;
  }
  executor_.submit(0, [this, made](Executor::Turn&) { finish(made); });
}

void DerivedStore::finish(const MadeRef& made) {
  std::optional<Error> error;
  {
    const MutexLock lock(mutex_);
    error = made->error;
  }
  if (!error) error = make(*made);
  made->source = Buffer();
  for (const std::shared_ptr<Wait>& wait : settle(made, !error)) {
    if (!wait->claim()) continue;
    if (error) {
      wait->done(*error);
    } else {
      std::memcpy(wait->into.data(), made->bytes.data() + wait->offset,
                  wait->into.size());
      wait->done({});
    }
  }
  begin_what_fits();
  const MutexLock lock(mutex_);
  --under_way_;  // Last: then this may be gone.
  changed_.notify_all();
}

std::optional<Error> DerivedStore::make(Made& made) const {
  const DerivedKey& key = made.key;
  Result<Buffer> bytes = derivation_->derive(
      key,
      made.notes == nullptr ? std::span<const std::byte>() : made.notes->span(),
      made.source.span());
  if (!bytes) {
    return std::move(bytes).error().while_doing(
        fmt::format("{}: {}", inner_->url_of(key.source), part_said(key)));
  }
  if (bytes->size() != key.size_bytes) {
    return corrupt(
        "{}: {}: {} bytes, and there were {} when it was indexed; index it "
        "again (refresh=\"always\")",
        inner_->url_of(key.source), part_said(key), bytes->size(),
        key.size_bytes);
  }
  made.bytes = *std::move(bytes);
  return std::nullopt;
}

/// Keeps what was made, or forgets it; gives who waited for it.
std::vector<std::shared_ptr<DerivedStore::Wait>> DerivedStore::settle(
    const MadeRef& made, bool is_good) {
  const MutexLock lock(mutex_);
  held_bytes_ -= made->key.source_bytes();
  if (is_good) {
    made->state = Made::State::kThere;
    made->place = there_.insert(there_.end(), made);
    ++made_;
    keep_notes(*made);
  } else {
    held_bytes_ -= made->key.size_bytes;
    known_.erase(made->name);
  }
  return std::move(made->waiting);
}

void DerivedStore::keep_notes(Made& made) {
  if (made.notes == nullptr) return;
  if (notes_bytes_ > kMostNotesBytes) {
    notes_.clear();
    notes_bytes_ = 0;
  }
  if (notes_.emplace(notes_name(made.key), made.notes).second) {
    notes_bytes_ += made.key.notes_bytes;
  }
  made.notes.reset();
}

Result<ObjectInfo> DerivedStore::stat(std::string_view key,
                                      std::stop_token stop) {
  LEAT_TRY(const auto parsed, DerivedKey::parse(key));
  if (!parsed) return inner_->stat(key, std::move(stop));
  LEAT_TRY(ObjectInfo info, inner_->stat(parsed->source, std::move(stop)));
  info.key = key;
  info.size_bytes = parsed->size_bytes;
  return info;
}

std::string DerivedStore::url_of(std::string_view key) const {
  const auto parsed = DerivedKey::parse(key);
  if (!parsed || !*parsed) return inner_->url_of(key);
  return inner_->url_of((*parsed)->source);
}

std::string DerivedStore::name_of(std::string_view key) const {
  const auto parsed = DerivedKey::parse(key);
  if (!parsed || !*parsed) return inner_->name_of(key);
  const std::string& source = (*parsed)->source;
  return inner_->name_of(source).append(key.substr(source.size()));
}

bool DerivedStore::names_version(std::string_view key) const {
  const auto parsed = DerivedKey::parse(key);
  if (!parsed || !*parsed) return inner_->names_version(key);
  return !(*parsed)->etag.empty() &&
         std::ranges::none_of((*parsed)->also, [](const auto& range) {
           return !range.source.empty() && range.etag.empty();
         });
}

std::uint64_t DerivedStore::made() const {
  const MutexLock lock(mutex_);
  return made_;
}

}  // namespace leat
