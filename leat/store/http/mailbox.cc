#include "leat/store/http/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace leat {

Mailbox::Mailbox() : wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Mailbox::~Mailbox() {
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

void Mailbox::wake(MutexLock& lock) {
  if (!std::exchange(is_asleep_, false)) return;
  lock.unlock();
  // A failed write means that it is readable already.
  (void)!eventfd_write(wake_fd_, 1);
  lock.lock();
}

bool Mailbox::post(Submission& submission) {
  MutexLock lock(mutex_);
  if (is_closed_) return false;
  mail_.submissions.push_back(std::move(submission));
  wake(lock);
  return true;
}

void Mailbox::post(TransferId cancelled) {
  MutexLock lock(mutex_);
  if (is_closed_) return;
  mail_.cancels.push_back(cancelled);
  wake(lock);
}

void Mailbox::post(HostNews news) {
  MutexLock lock(mutex_);
  if (is_closed_) return;
  mail_.news.push_back(std::move(news));
  wake(lock);
}

void Mailbox::take(Mail& mail) {
  const MutexLock lock(mutex_);
  std::swap(mail, mail_);
}

bool Mailbox::may_sleep() {
  const MutexLock lock(mutex_);
  is_asleep_ = !is_closed_ && mail_.submissions.empty() &&
               mail_.cancels.empty() && mail_.news.empty();
  return is_asleep_;
}

void Mailbox::awake() {
  const MutexLock lock(mutex_);
  is_asleep_ = false;
}

void Mailbox::close() {
  MutexLock lock(mutex_);
  is_closed_ = true;
  wake(lock);
}

bool Mailbox::is_closed() {
  const MutexLock lock(mutex_);
  return is_closed_;
}

}  // namespace leat
