// Whether, and when, an operation of a store that failed is tried again.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "leat/base/clock.h"
#include "leat/base/error.h"
#include "leat/base/mutex.h"
#include "leat/runtime/retry_policy.h"
#include "leat/store/endpoint_notes.h"

namespace leat {

/// Judges by the error, by how long an operation has failed, and by whether the
/// store answers others meanwhile. It sends and waits for nothing.
///
/// Threads: any.
class RetryJudgement {
 public:
  /// The course of an operation that fails.
  struct Trouble {
    TimePoint began;
    TimePoint failed{};  ///< First; once an attempt has been made.
    std::uint32_t attempts_made = 0;
  };

  /// See RetryingStore.
  RetryJudgement(RetryOptions options, std::uint64_t seed,
                 std::shared_ptr<const EndpointNotes> notes,
                 std::function<TimePoint()> not_before);

  const RetryOptions& options() const { return policy_.options(); }

  /// The store has answered, or a read has got its bytes.
  void answered();
  void has_read() { has_read_ = true; }

  bool worth_another(const Error& error, const Trouble& trouble) const;
  /// The time after which it is not tried again, however few its attempts.
  TimePoint end_of(const Error& error, const Trouble& trouble) const;
  /// Its patience has ended, and no other read has had an answer meanwhile.
  bool is_hopeless(const Error& error, const Trouble& trouble) const;
  /// The end of the wait that the service asks for after `error`; `now` if it
  /// asks for none.
  TimePoint asked_wait(const Error& error, const Trouble& trouble,
                       TimePoint now) const;
  /// Counts a failure at `now`, and returns the time to try again, which is
  /// after `from`. `others` operations are under way, this one included.
  TimePoint next_try(std::uint32_t attempts_made, std::size_t others,
                     TimePoint now, TimePoint from);
  /// The error, with what was tried and what may help.
  Error given_up(Error error, const Trouble& trouble) const;

 private:
  bool may_pass(ErrorCode code) const;
  Nanoseconds patience_with(const Error& error, const Trouble& trouble) const;
  std::optional<Nanoseconds> patience_at_first(const Error& error) const;
  /// Neither a second nor many failures have passed since an answer.
  bool is_answering(TimePoint now) const LEAT_REQUIRES(mutex_);

  RetryPolicy policy_;
  const std::shared_ptr<const EndpointNotes> notes_;
  const std::function<TimePoint()> not_before_;
  const SteadyClock clock_;
  std::atomic<bool> has_read_ = false;

  mutable Mutex mutex_;
  TimePoint answered_at_ LEAT_GUARDED_BY(mutex_);
  std::size_t failed_since_ LEAT_GUARDED_BY(mutex_) = 0;
  TimePoint next_turn_
      LEAT_GUARDED_BY(mutex_);  // In an outage, the next try's.
};

}  // namespace leat
