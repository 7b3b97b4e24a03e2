// Parallel listing by dividing the range of keys.
//
// The range is cut into segments, in order and without gaps: (a, b], (b, c], …
// Each is listed by one worker, page by page, from its lower end upwards; only
// the worker that holds a segment moves its lower end, and its upper end moves
// down only when the same worker gives the rest away. So whatever the cuts,
// each key falls into one segment, and the segments in order are the answer.
//
// A worker gives keys away after a page, if others wait: the part above the
// page is cut at names of folders, which never disappoint, or at guessed keys.
// A guess costs about one request: its find ends in the middle of a page. There
// are never more guesses than pages that held something, so at worst every
// second request finds nothing. With many pages, few do, since with ten million
// keys every worker has had its part long before.

#include "leat/store/list_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/mutex.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"
#include "leat/store/list_unsorted.h"
#include "leat/store/split_keys.h"

namespace leat {
namespace {

// One prefix inside another that holds nothing else is looked into this deep.
constexpr int kMostFolderDepth = 8;

// Guesses that a listing of any size may spend, and pages that earn one more.
constexpr std::size_t kFreeGuesses = 48;
constexpr std::size_t kPagesAGuess = 250;

std::size_t most_guesses(std::size_t good_pages) {
  return std::min(good_pages, kFreeGuesses + good_pages / kPagesAGuess);
}

bool is_ours(std::string_view key) {
  return key.starts_with(".leat/") ||
         key.find("/.leat/") != std::string_view::npos;
}

/// A part of the keys and the objects found in it.
struct Segment {
  KeyRange range;      ///< `after` is the last key seen.
  std::string resume;  ///< The store's token; empty before the first page.
  std::vector<ObjectInfo> objects;
};

class Lister {
 public:
  Lister(Store& store, std::string_view prefix, const ListAllOptions& options,
         std::stop_token stop)
      : store_(store),
        prefix_(prefix),
        options_(options),
        on_stop_(std::move(stop), [this] { end(); }) {}

  Result<std::vector<ObjectInfo>> run();
  /// After run(), which is then in vain: the store lists in no order.
  bool is_unsorted() {
    const MutexLock lock(mutex_);
    return is_unsorted_;
  }

 private:
  enum class After { kMore, kDone };

  /// Lists one page of a segment.
  Result<After> list_page(Segment& segment);
  Result<void> take(Segment& segment, ListPage page,
                    std::vector<std::string>& seen);
  void give_away(Segment& segment, const std::vector<std::string>& seen);
  void add_segment(KeyRange range) LEAT_REQUIRES(mutex_);

  void work();
  void work_on(Segment& segment);
  void find_folders();
  void fail(Error error);
  void give_up_order();
  void end();
  std::optional<ListProgress> take_untold();
  void tell();
  bool wait();
  Result<std::vector<ObjectInfo>> collect();

  Store& store_;
  const std::string prefix_;
  const ListAllOptions& options_;
  std::stop_source stop_;

  Mutex mutex_;
  CondVar changed_;
  // By their lower end when they were made: in the order of keys.
  std::map<std::string, std::unique_ptr<Segment>> segments_
      LEAT_GUARDED_BY(mutex_);
  std::deque<Segment*> waiting_ LEAT_GUARDED_BY(mutex_);
  std::size_t idle_ LEAT_GUARDED_BY(mutex_) = 0;
  std::size_t busy_ LEAT_GUARDED_BY(mutex_) = 0;
  bool wants_folders_ LEAT_GUARDED_BY(mutex_) = false;
  std::vector<std::string> folders_ LEAT_GUARDED_BY(mutex_);  // Sorted.
  std::optional<Error> error_ LEAT_GUARDED_BY(mutex_);
  bool is_unsorted_ LEAT_GUARDED_BY(mutex_) = false;
  // Counts the pages of all keys.
  std::size_t good_pages_ LEAT_GUARDED_BY(mutex_) = 0;
  std::size_t guesses_ LEAT_GUARDED_BY(mutex_) = 0;
  ListProgress progress_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t told_lists_ LEAT_GUARDED_BY(mutex_) = 0;

  std::stop_callback<std::function<void()>> on_stop_;
};

Result<std::vector<ObjectInfo>> Lister::run() {
  Segment* first = nullptr;
  {
    const MutexLock lock(mutex_);
    add_segment({.after = "", .upto = std::nullopt});
    first = waiting_.front();
    waiting_.clear();
    idle_ = options_.threads > 1 ? options_.threads - 1 : 0;
  }
  // Most prefixes fit on a page; they need no thread.
  LEAT_TRY(const After after, list_page(*first));
  if (after == After::kDone) {
    tell();
    return collect();
  }
  std::vector<std::jthread> threads;
  {
    const MutexLock lock(mutex_);
    waiting_.push_front(first);
    wants_folders_ = options_.threads > 1;
    idle_ = 0;
    busy_ = std::max<std::size_t>(options_.threads, 1);
  }
  for (std::size_t i = 0; i < std::max<std::size_t>(options_.threads, 1); ++i) {
    const auto lists = [this, i] {
      name_this_thread(fmt::format("leat-list-{}", i));
      work();
    };
    if (i == 0) {
      threads.push_back(start_thread(lists));
    } else if (!try_start_thread(threads, lists)) {
      const MutexLock lock(mutex_);
      --busy_;  // One fewer lists.
      changed_.notify_all();
    }
  }
  while (!wait()) tell();
  threads.clear();
  tell();
  return collect();
}

void Lister::work() {
  MutexLock lock(mutex_);
  while (true) {
    --busy_;
    ++idle_;
    changed_.notify_all();
    while (waiting_.empty() && !wants_folders_ && busy_ > 0 &&
           !stop_.stop_requested()) {
      changed_.wait(lock);
    }
    const bool is_over = waiting_.empty() && !wants_folders_;
    if (is_over || stop_.stop_requested()) {
      changed_.notify_all();
      return;
    }
    --idle_;
    ++busy_;
    if (wants_folders_) {
      wants_folders_ = false;
      lock.unlock();
      find_folders();
    } else {
      Segment& segment = *waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      work_on(segment);
    }
    lock.lock();
  }
}

void Lister::work_on(Segment& segment) {
  while (!stop_.stop_requested()) {
    Result<After> after = list_page(segment);
    if (!after) return fail(std::move(after).error());
    if (*after == After::kDone) return;
  }
}

Result<Lister::After> Lister::list_page(Segment& segment) {
  ListRequest request{.prefix = prefix_,
                      .start_after = segment.range.after,
                      .resume = segment.resume,
                      .delimiter = ""};
  LEAT_TRY(ListPage page, store_.list(request, stop_.get_token()));
  const bool is_all = segment.range.after.empty() && page.resume.empty();
  if (!page.is_sorted && !is_all) {
    give_up_order();
    return After::kDone;
  }
  segment.resume = page.resume;
  std::vector<std::string> seen;
  LEAT_TRY_VOID(take(segment, std::move(page), seen));
  const bool is_done =
      segment.resume.empty() ||
      (segment.range.upto && segment.range.after >= *segment.range.upto);
  if (!is_done) give_away(segment, seen);
  return is_done ? After::kDone : After::kMore;
}

/// Moves the segment's lower end past the page; `seen` are the page's keys.
Result<void> Lister::take(Segment& segment, ListPage page,
                          std::vector<std::string>& seen) {
  KeyRange& range = segment.range;
  std::uint64_t kept = 0;
  for (ObjectInfo& object : page.objects) {
    if (object.key <= range.after || !object.key.starts_with(prefix_)) {
      return corrupt(
          "{} does not list its keys in byte order, or lists others than asked "
          "for",
          store_.url_of(prefix_));
    }
    range.after = object.key;
    if (range.upto && object.key > *range.upto) break;
    seen.push_back(object.key);
    if (is_passed_over(object, prefix_.size())) continue;
    segment.objects.push_back(std::move(object));
    ++kept;
  }
  const MutexLock lock(mutex_);
  progress_.objects += kept;
  ++progress_.lists;
  good_pages_ += seen.empty() ? 0 : 1;
  changed_.notify_all();
  return {};
}

void Lister::give_away(Segment& segment, const std::vector<std::string>& seen) {
  std::size_t guesses = 0;
  std::vector<std::string> cuts;
  {
    const MutexLock lock(mutex_);
    if (idle_ <= waiting_.size()) return;
    const std::size_t wanted = idle_ - waiting_.size();
    cuts = pick_split_keys(segment.range, folders_, wanted);
    const std::size_t most = most_guesses(good_pages_);
    if (cuts.empty() && most > guesses_) {
      guesses = std::min(wanted, most - guesses_);
      guesses_ += guesses;
    }
  }
  if (cuts.empty()) {
    const std::vector<std::string_view> views(seen.begin(), seen.end());
    cuts = guess_split_keys(prefix_, segment.range, views, guesses);
  }
  const MutexLock lock(mutex_);
  guesses_ -= guesses - std::min(guesses, cuts.size());
  if (cuts.empty()) return;
  std::optional<std::string> upto = std::move(segment.range.upto);
  segment.range.upto = cuts.front();
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    add_segment({.after = cuts[i],
                 .upto = i + 1 < cuts.size()
                             ? std::optional<std::string>(cuts[i + 1])
                             : upto});
  }
  changed_.notify_all();
}

void Lister::add_segment(KeyRange range) {
  std::string start = range.after;
  auto segment = std::make_unique<Segment>();
  segment->range = std::move(range);
  waiting_.push_back(segment.get());
  segments_.emplace(std::move(start), std::move(segment));
}

/// Asks for the names of folders, as good places to cut at. Only the first page
/// of them: more can be guessed as well.
void Lister::find_folders() {
  std::string folder = prefix_;
  for (int depth = 0; depth < kMostFolderDepth; ++depth) {
    const Result<ListPage> page = store_.list(
        {.prefix = folder, .start_after = "", .resume = "", .delimiter = "/"},
        stop_.get_token());
    if (!page) return fail(page.error());
    const MutexLock lock(mutex_);
    ++progress_.lists;
    const auto& found = page->common_prefixes;
    const bool is_only_one =
        found.size() == 1 && page->objects.empty() && page->resume.empty();
    if (is_only_one && found[0] > folder) {
      folder = found[0];
      continue;
    }
    folders_ = found;
    std::sort(folders_.begin(), folders_.end());
    return;
  }
}

void Lister::fail(Error error) {
  {
    const MutexLock lock(mutex_);
    // Later ones are echoes of the stop that the first one causes.
    if (!error_) error_ = std::move(error);
  }
  end();
}

void Lister::give_up_order() {
  {
    const MutexLock lock(mutex_);
    is_unsorted_ = true;
  }
  end();
}

void Lister::end() {
  stop_.request_stop();
  const MutexLock lock(mutex_);  // So that nobody is between check and wait.
  changed_.notify_all();
}

/// Progress that was not told yet, told from now on.
std::optional<ListProgress> Lister::take_untold() {
  const MutexLock lock(mutex_);
  if (progress_.lists == told_lists_) return std::nullopt;
  told_lists_ = progress_.lists;
  return progress_;
}

void Lister::tell() {
  if (!options_.progress) return;
  while (const auto progress = take_untold()) options_.progress(*progress);
}

/// Waits until no worker is busy and nothing is left, or until there is
/// progress to tell of. True once it is over.
bool Lister::wait() {
  MutexLock lock(mutex_);
  while (true) {
    const bool is_empty = waiting_.empty() && !wants_folders_;
    if (busy_ == 0 && (is_empty || stop_.stop_requested())) return true;
    if (options_.progress && progress_.lists != told_lists_) return false;
    changed_.wait(lock);
  }
}

Result<std::vector<ObjectInfo>> Lister::collect() {
  const MutexLock lock(mutex_);
  if (error_) return *std::move(error_);
  if (stop_.stop_requested()) {
    return Error(ErrorCode::kCancelled,
                 fmt::format("listing {}: cancelled", store_.url_of(prefix_)));
  }
  std::vector<ObjectInfo> all;
  all.reserve(progress_.objects);
  for (auto& [start, segment] : segments_) {
    std::move(segment->objects.begin(), segment->objects.end(),
              std::back_inserter(all));
    segment->objects = {};
  }
  return all;
}

}  // namespace

bool is_passed_over(const ObjectInfo& object, std::size_t prefix_size) {
  return (object.size_bytes == 0 && object.key.ends_with('/')) ||
         is_ours(std::string_view(object.key).substr(prefix_size));
}

Result<std::vector<ObjectInfo>> list_all(Store& store, std::string_view prefix,
                                         const ListAllOptions& options,
                                         std::stop_token stop) {
  if (store.traits().lists_in_order) {
    Lister lister(store, prefix, options, stop);
    auto all = lister.run();
    if (!lister.is_unsorted()) return all;
  }
  return list_unsorted(store, prefix, options.progress, stop);
}

}  // namespace leat
