#include "leat/index/checksums.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "leat/base/hash.h"
#include "leat/base/mutex.h"
#include "leat/dataset/catalogue.h"
#include "leat/dataset/derive.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

constexpr std::uint64_t kBlockBytes = 8 << 20;
constexpr std::size_t kMostThreads = 16;
constexpr std::chrono::milliseconds kLookEvery{10};

/// The bytes of a sample in an object, and its checksum as far as it is read.
struct Part {
  std::uint32_t field = 0;
  SampleId sample;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// All parts, sorted by object and beginning.
class Parts {
 public:
  explicit Parts(const Catalogue& catalogue)
      : firsts_(catalogue.objects() + 1), crcs_(catalogue.fields().size()) {
    const auto each = [&](const auto& use) {
      for (std::size_t field = 0; field < crcs_.size(); ++field) {
        if (catalogue.fields()[field].kind != FieldKind::kBytes) continue;
        for (SampleId id; id.value < catalogue.samples(); ++id.value) {
          const ByteRange range = catalogue.range(field, id);
          if (!range.is_missing()) use(field, id, range);
        }
      }
    };
    each([&](std::size_t field, SampleId, const ByteRange& range) {
      if (crcs_[field].empty()) crcs_[field].resize(catalogue.samples());
      ++firsts_[range.object.value + 1];
      bytes_ += range.length_bytes;
    });
    for (std::size_t i = 1; i < firsts_.size(); ++i) {
      firsts_[i] += firsts_[i - 1];
    }
    all_.resize(firsts_.back());
    std::vector<std::uint64_t> next = firsts_;
    each([&](std::size_t field, SampleId id, const ByteRange& range) {
      all_[next[range.object.value]++] = {
          .field = static_cast<std::uint32_t>(field),
          .sample = id,
          .begin = range.offset,
          .end = range.offset + range.length_bytes};
    });
  }

  /// REQUIRES: no other thread has this object.
  std::span<const Part> of(ObjectIndex object) {
    const std::span<Part> parts(all_.data() + firsts_[object.value],
                                all_.data() + firsts_[object.value + 1]);
    std::ranges::sort(parts, {}, &Part::begin);
    return parts;
  }
  std::uint64_t objects() const { return firsts_.size() - 1; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint32_t& crc_of(const Part& part) {
    return crcs_[part.field][part.sample.value];
  }
  /// 0 for a sample without the field.
  std::uint32_t crc(std::size_t field, SampleId sample) const {
    return crcs_[field].empty() ? 0 : crcs_[field][sample.value];
  }

 private:
  std::vector<std::uint64_t> firsts_;  // By object, and an end.
  std::vector<Part> all_;
  std::vector<std::vector<std::uint32_t>> crcs_;  // By field and sample.
  std::uint64_t bytes_ = 0;
};

/// Workers take objects until all are read, one fails, or somebody stops them.
class Reading {
 public:
  Reading(Store& store, std::string_view prefix, const Catalogue& catalogue,
          Parts& parts)
      : store_(store), prefix_(prefix), catalogue_(catalogue), parts_(parts) {}

  void work() {
    Buffer block(kBlockBytes);
    while (!stop_.stop_requested()) {
      const std::uint64_t number = next_++;
      if (number >= parts_.objects()) return;
      const ObjectIndex object{static_cast<std::uint32_t>(number)};
      if (Result<void> read = read_object(object, block); !read) {
        const MutexLock lock(mutex_);
        if (!failure_) failure_ = std::move(read).error();
        stop_.request_stop();
      }
    }
  }
  void request_stop() { stop_.request_stop(); }
  std::uint64_t bytes_read() const { return bytes_read_; }
  Result<void> result() {
    const MutexLock lock(mutex_);
    if (failure_) return *failure_;
    if (!stop_.stop_requested()) return {};
    return Error(ErrorCode::kCancelled, "computing checksums was stopped");
  }

 private:
  Result<void> read_object(ObjectIndex object, Buffer& block) {
    const std::span<const Part> parts = parts_.of(object);
    if (parts.empty()) return {};
    const auto last = std::ranges::max_element(parts, {}, &Part::end);
    std::size_t first = 0;  // The parts before it are whole.
    for (std::uint64_t at = parts.front().begin; at < last->end;) {
      const std::uint64_t end = std::min(at + kBlockBytes, last->end);
      const auto bytes = block.span().first(end - at);
      LEAT_TRY_VOID(read_block(object, at, bytes));
      add_block(parts, first, at, bytes);
      while (first < parts.size() && parts[first].end <= end) ++first;
      // A gap between two samples is not read.
      at = first < parts.size() ? std::max(end, parts[first].begin) : end;
      bytes_read_ += bytes.size();
    }
    return {};
  }

  Result<void> read_block(ObjectIndex object, std::uint64_t at,
                          std::span<std::byte> bytes) {
    const ObjectView view = catalogue_.object(object);
    ReadRequest request;
    request.object = {.key = key_in_store(prefix_, view.key),
                      .etag = std::string(view.etag)};
    request.offset = at;
    request.into = bytes;
    return read_range(store_, std::move(request), stop_.get_token());
  }

  void add_block(std::span<const Part> parts, std::size_t first,
                 std::uint64_t at, std::span<const std::byte> bytes) {
    const std::uint64_t end = at + bytes.size();
    for (std::size_t i = first; i < parts.size() && parts[i].begin < end; ++i) {
      const std::uint64_t from = std::max(parts[i].begin, at);
      const std::uint64_t until = std::min(parts[i].end, end);
      if (from >= until) continue;
      std::uint32_t& crc = parts_.crc_of(parts[i]);
      crc = crc32c(bytes.subspan(from - at, until - from), crc);
    }
  }

  Store& store_;
  const std::string_view prefix_;
  const Catalogue& catalogue_;
  Parts& parts_;
  std::stop_source stop_;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<std::uint64_t> bytes_read_ = 0;
  Mutex mutex_;
  std::optional<Error> failure_ LEAT_GUARDED_BY(mutex_);
};

/// Reads on many threads, and tells of it on this one.
Result<void> read_all(Reading& reading, std::uint64_t bytes,
                      const IndexOptions& options) {
  std::atomic<std::size_t> working = 0;
  std::vector<std::jthread> threads;
  const auto work = [&] {
    name_this_thread("leat-checksums");
    reading.work();
    --working;
  };
  const auto count = std::clamp<std::size_t>(options.threads, 1, kMostThreads);
  for (std::size_t i = 0; i < count; ++i) {
    ++working;
    if (i == 0) {
      threads.push_back(start_thread(work));
    } else if (!try_start_thread(threads, work)) {
      --working;
    }
  }
  IndexProgress now;
  now.bytes_total = bytes;
  while (working != 0) {
    std::this_thread::sleep_for(kLookEvery);
    now.bytes_read = reading.bytes_read();
    if (options.progress) options.progress(now);
  }
  return reading.result();
}

}  // namespace

Result<Buffer> add_checksums(Store& store, std::string_view prefix,
                             Buffer catalogue, const IndexOptions& options,
                             const std::stop_token& stop) {
  LEAT_TRY(const Catalogue from, Catalogue::open(std::move(catalogue)));
  Parts parts(from);
  Reading reading(store, prefix, from, parts);
  const std::stop_callback on_stop(stop, [&] { reading.request_stop(); });
  LEAT_TRY_VOID(read_all(reading, parts.bytes(), options));
  return with_checksums(from, [&](std::size_t field, SampleId sample) {
    return parts.crc(field, sample);
  });
}

}  // namespace leat
