#include "leat/engine/order_log/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/system_error.h"
#include "leat/runtime/log.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

// If a run was resumed more often than this, something else is wrong with it.
constexpr unsigned kMostFiles = 10'000;

}  // namespace

std::string order_log_name(const std::string& path, unsigned number) {
  if (number == 1) return path;
  std::filesystem::path name = path;
  name.replace_extension(
      fmt::format(".{}{}", number, name.extension().string()));
  return name.string();
}

Result<std::unique_ptr<OrderLogWriter>> OrderLogWriter::open(
    const std::string& path, OrderLogHead head) {
  for (unsigned number = 1; number <= kMostFiles; ++number) {
    const std::string name = order_log_name(path, number);
    OwnedFd file(
        ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file && errno == EEXIST) continue;
    if (!file) return system_error(errno, "the order log " + name);
    std::unique_ptr<OrderLogWriter> log(
        new OrderLogWriter(std::move(file), name));
    std::string bytes(kOrderLogMagic);
    append_entry(std::move(head), bytes);
    LEAT_TRY_VOID(log->write_all(bytes));
    log->thread_ = start_thread(
        [own = log.get()](const std::stop_token& stop) { own->run(stop); });
    return log;
  }
  return invalid(
      "{} and {} more order logs of that name are there; give this run another "
      "one",
      path, kMostFiles - 1);
}

OrderLogWriter::OrderLogWriter(OwnedFd file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {}

void OrderLogWriter::expect_start() {
  const MutexLock lock(mutex_);
  starts_ = true;
}

void OrderLogWriter::add(OrderLogBatch batch) {
  const MutexLock lock(mutex_);
  batch.starts = std::exchange(starts_, false);
  append(std::move(batch));
}

void OrderLogWriter::add(const OrderLogEnd& end) {
  const MutexLock lock(mutex_);
  append(end);
}

void OrderLogWriter::append(const OrderLogEntry& entry) {
  if (has_ended_) return;
  append_entry(entry, waiting_);
  changed_.notify_all();
}

bool OrderLogWriter::settle(Nanoseconds timeout) {
  MutexLock lock(mutex_);
  return changed_.wait_for(
      lock, timeout, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
        return has_ended_ || (waiting_.empty() && !is_writing_);
      });
}

void OrderLogWriter::close() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

// A stop ends it once all is written.
void OrderLogWriter::run(const std::stop_token& stop) {
  name_this_thread("leat-order-log");
  MutexLock lock(mutex_);
  while (!has_ended_) {
    changed_.wait(lock, stop, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
      return !waiting_.empty();
    });
    if (waiting_.empty()) break;
    const std::string bytes = std::exchange(waiting_, {});
    is_writing_ = true;
    lock.unlock();
    const Result<void> written = write_all(bytes);
    if (!written) {
      log_warning(
          fmt::format("{}; the order log ends here, and proves no "
                      "later step",
                      written.error().message()));
    }
    lock.lock();
    is_writing_ = false;
    has_ended_ = !written;
    changed_.notify_all();
  }
  has_ended_ = true;
  waiting_.clear();
  changed_.notify_all();
}

Result<void> OrderLogWriter::write_all(const std::string& bytes) const {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t put =
        ::write(file_.get(), bytes.data() + at, bytes.size() - at);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_error(errno, "writing " + path_);
    at += static_cast<std::size_t>(put);
  }
  return {};
}

}  // namespace leat
