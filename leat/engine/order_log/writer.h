// Writes an order log while training runs.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "leat/base/clock.h"
#include "leat/base/error.h"
#include "leat/base/mutex.h"
#include "leat/base/owned_fd.h"
#include "leat/base/result.h"
#include "leat/engine/order_log/entries.h"

namespace leat {

/// The order log of one rank: entries.h has its bytes.
///
/// Entries are packed by the thread that adds them, which costs some
/// nanoseconds an id, and written by a thread of the log's own. A write that
/// fails ends the log with a warning; training goes on.
///
/// Threads:  any, and in the order of the calls.
/// Lifetime: destruction closes it.
class OrderLogWriter {
 public:
  /// Makes a new file and never replaces one: "run.order" becomes
  /// "run.2.order" if that is there, and so on. Blocks.
  ///
  /// Errors: those of open, which name the file
  static Result<std::unique_ptr<OrderLogWriter>> open(const std::string& path,
                                                      OrderLogHead head);
  ~OrderLogWriter() { close(); }
  OrderLogWriter(const OrderLogWriter&) = delete;
  OrderLogWriter& operator=(const OrderLogWriter&) = delete;

  /// The next batch is not the one that follows.
  void expect_start();
  /// Adds a batch; sets its `starts`. Returns at once.
  void add(OrderLogBatch batch);
  void add(const OrderLogEnd& end);

  /// Waits until all that was added is written, at most `timeout`; false if
  /// it is not yet. True where the log has ended.
  bool settle(Nanoseconds timeout);
  /// Writes what was added, and closes the file. May be called twice.
  void close();

  const std::string& path() const { return path_; }

 private:
  OrderLogWriter(OwnedFd file, std::string path);
  void append(const OrderLogEntry& entry) LEAT_REQUIRES(mutex_);
  void run(const std::stop_token& stop);
  /// Errors: those of write
  Result<void> write_all(const std::string& bytes) const;

  const OwnedFd file_;
  const std::string path_;
  Mutex mutex_;
  CondVar changed_;
  std::string waiting_ LEAT_GUARDED_BY(mutex_);  ///< Entries to be written.
  bool is_writing_ LEAT_GUARDED_BY(mutex_) = false;
  bool has_ended_ LEAT_GUARDED_BY(mutex_) = false;
  bool starts_ LEAT_GUARDED_BY(mutex_) = true;
  std::jthread thread_;  // Last: joined before the rest dies.
};

/// "run.order" for 1; "run.2.order" for 2.
std::string order_log_name(const std::string& path, unsigned number);

}  // namespace leat
