// Credentials that stay good: fetched when needed, renewed before they end.
//
// Requests ask for credentials at the moment they are signed. While some are
// good they get them at once, also while newer ones are being fetched. Once
// none are, requests wait for the fetch that is on, without a thread each, and
// all are answered by it: with credentials, or with why there are none.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/runtime/executor.h"
#include "leat/runtime/timer_queue.h"
#include "leat/store/cloud/provider.h"

namespace leat {

using CredentialsRef = std::shared_ptr<const Credentials>;

/// Holds the credentials of one store.
///
/// Five minutes before they end (see refresh_times()) the next request starts a
/// fetch. There is one fetch at a time here, and one on this node if
/// `turn_path` names a file (see node_turn.h). After a failed fetch there is a
/// pause, half a second to 30 s; a request during it that needs new credentials
/// gets the same error.
///
/// Threads:  any. Waiting callbacks are called on a thread of this object.
/// Lifetime: destruction ends the fetch, answers the callbacks that wait with
///           kCancelled, and joins. Two threads are started with the first
///           fetch, none before.
class RefreshingCredentials {
 public:
  using Ready = std::function<void(Result<CredentialsRef>)>;

  struct Options {
    /// The credentials to start with; nullopt to fetch before the first
    /// request.
    std::optional<TimedCredentials> initial;
    /// Null: `initial` is all there is.
    std::shared_ptr<CredentialProvider> provider;
    std::string turn_path;
    std::shared_ptr<const Clock> clock = std::make_shared<SteadyClock>();
  };

  explicit RefreshingCredentials(Options options);
  ~RefreshingCredentials();
  RefreshingCredentials(const RefreshingCredentials&) = delete;
  RefreshingCredentials& operator=(const RefreshingCredentials&) = delete;

  /// Credentials to sign with now; null if there are none that are good.
  CredentialsRef current();

  /// Calls `ready` with credentials as soon as there are any that are good:
  /// before this returns, or later.
  ///
  /// Errors: as CredentialProvider::fetch(); kCancelled once `stop` fires
  void when_ready(const std::stop_token& stop, Ready ready);

  /// when_ready(), and waits.
  Result<CredentialsRef> wait(const std::stop_token& stop);

  /// The server says that `used` are no longer good. True if asking again may
  /// help: there are newer ones, or now will be. False if `used` themselves
  /// came less than a minute ago after such a refusal, or nothing can be
  /// fetched.
  bool reject(const CredentialsRef& used);

 private:
  struct Waiter {
    using OnStop = std::stop_callback<std::function<void()>>;
    Ready ready;
    std::optional<OnStop> on_stop;
  };
  using WaiterRef = std::shared_ptr<Waiter>;
  struct Held {
    CredentialsRef keys;
    std::optional<TimePoint> renew_at;
    std::optional<TimePoint> unusable_at;
    TimePoint fetched_at{};
    /// It replaces credentials that the server refused.
    bool is_replacement = false;
  };
  struct Threads {
    TimerQueue timers{"leat-creds-wait"};
    Executor fetcher{"leat-creds", 1};
  };

  bool is_usable(TimePoint now) const LEAT_REQUIRES(mutex_);
  void start_fetch(TimePoint now) LEAT_REQUIRES(mutex_);
  void fetch();
  Result<CredentialsRef> adopt(Result<CredentialAnswer> answer)
      LEAT_REQUIRES(mutex_);
  Result<CredentialsRef> note_failure(Error error) LEAT_REQUIRES(mutex_);
  void hear_stop(std::uint64_t waiter);
  void cancel(std::uint64_t waiter);
  static void answer(const WaiterRef& waiter, Result<CredentialsRef> result);

  const Options options_;
  std::stop_source closing_;

  Mutex mutex_;
  Held held_ LEAT_GUARDED_BY(mutex_);
  bool is_fetching_ LEAT_GUARDED_BY(mutex_) = false;
  CredentialsRef refused_ LEAT_GUARDED_BY(mutex_);
  std::optional<Error> failure_ LEAT_GUARDED_BY(mutex_);
  TimePoint not_before_ LEAT_GUARDED_BY(mutex_){};
  Nanoseconds pause_ LEAT_GUARDED_BY(mutex_){0};
  std::uint64_t next_waiter_ LEAT_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, WaiterRef> waiters_ LEAT_GUARDED_BY(mutex_);
  std::unique_ptr<Threads> threads_ LEAT_GUARDED_BY(mutex_);
};

/// Holds `known`, or else what `provider` gives. Null if there is neither:
/// requests go as nobody's.
std::unique_ptr<RefreshingCredentials> keep_credentials(
    const std::optional<Credentials>& known,
    const std::shared_ptr<CredentialProvider>& provider,
    const std::string& turn_path);

}  // namespace leat
