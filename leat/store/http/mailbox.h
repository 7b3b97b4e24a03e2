// Messages from other threads to an I/O thread.
#pragma once
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/store/http/http_client.h"
#include "leat/store/http/resolver.h"

namespace leat {

/// A request for an I/O thread to carry out.
struct Submission {
  HttpRequest request;
  std::stop_token stop;
  HttpDone done;
};

/// Names one transfer of one I/O thread uniquely, since slots are reused.
struct TransferId {
  std::uint32_t slot = 0;
  std::uint32_t use = 0;
};

/// The resolver's answer about a host.
struct HostNews {
  std::string host;
  Result<HostAnswerRef> answer;
};

/// Three lists under one lock, and an eventfd that is written only while the
/// owner sleeps.
///
/// Shared with threads that may still call back (stop callbacks, the resolver),
/// so that a late message meets a closed mailbox instead of freed memory.
///
/// Threads: any post; one owner takes and sleeps.
class Mailbox {
 public:
  struct Mail {
    std::vector<Submission> submissions;
    std::vector<TransferId> cancels;
    std::vector<HostNews> news;
  };

  Mailbox();
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Readable when the owner should wake; negative if no descriptor was left.
  int wake_fd() const { return wake_fd_; }

  /// Once closed, returns false and leaves `submission` unchanged.
  bool post(Submission& submission);
  void post(TransferId cancelled);
  void post(HostNews news);

  /// Swaps the messages into `mail`, whose lists must be empty.
  void take(Mail& mail);
  /// True if there is nothing to take; posts will then write the eventfd until
  /// awake() is called.
  bool may_sleep();
  void awake();
  /// From now on no submission is accepted, and the owner wakes.
  void close();
  bool is_closed();

 private:
  // Unlocks and relocks: the analysis cannot tell that `lock` is mutex_'s.
  void wake(MutexLock& lock)
      LEAT_REQUIRES(mutex_) LEAT_NO_THREAD_SAFETY_ANALYSIS;

  const int wake_fd_;
  Mutex mutex_;
  Mail mail_ LEAT_GUARDED_BY(mutex_);
  bool is_asleep_ LEAT_GUARDED_BY(mutex_) = false;
  bool is_closed_ LEAT_GUARDED_BY(mutex_) = false;
};

}  // namespace leat
