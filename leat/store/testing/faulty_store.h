// A store that fails when told to.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/store/store_wrapper.h"

namespace leat::testing {

/// Which call of a store this is.
struct FaultyCall {
  enum class Kind { kRead, kList, kWrite, kStat };
  Kind kind = Kind::kRead;
  std::uint64_t nth = 0;  ///< Counts all calls, from 0.
  std::string_view key;   ///< Or the prefix of a list.
  std::uint32_t attempt = 0;
};

/// Asks a script before each call, and passes on the calls that the script
/// allows.
///
/// Threads: any; the script is called by many at once.
class FaultyStore final : public StoreWrapper {
 public:
  /// The error that this call ends in, or nullopt to let it through.
  using Script = std::function<std::optional<Error>(const FaultyCall&)>;

  FaultyStore(std::unique_ptr<Store> inner, Script script)
      : StoreWrapper(std::move(inner)), script_(std::move(script)) {}

  std::uint64_t calls() const { return calls_; }

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;
  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override;
  Result<ObjectInfo> write(std::string_view key,
                           std::span<const std::byte> bytes,
                           std::stop_token stop) override;
  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override;

 private:
  std::optional<Error> fault(FaultyCall::Kind kind, std::string_view key,
                             std::uint32_t attempt = 0);

  const Script script_;
  std::atomic<std::uint64_t> calls_ = 0;
};

/// Fails the first `count` calls with `code`.
FaultyStore::Script fail_first(std::uint64_t count, ErrorCode code);

/// Fails a share of the calls, drawn from `seed` and the number of the call.
FaultyStore::Script fail_share(double share, ErrorCode code,
                               std::uint64_t seed);

/// Keeps reads until the test lets them go on; the rest is passed on.
///
/// Threads:  any.
/// Lifetime: reads that are still held when it dies are a bug, and abort.
class HeldStore final : public StoreWrapper {
 public:
  explicit HeldStore(std::unique_ptr<Store> inner)
      : StoreWrapper(std::move(inner)) {}
  ~HeldStore() override;

  /// Keys of the reads that are held, oldest first.
  std::vector<std::string> held() const;
  /// Lets the oldest held read go on; waits for one.
  void release_one();
  /// Answers the oldest held read with `error`; waits for one.
  void fail_one(Error error);
  /// Waits until `count` reads are held.
  void wait_for(std::size_t count) const;

  /// Held until released; a read that is stopped stays, and is then refused by
  /// the inner store.
  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;

 private:
  struct Held {
    ReadRequest request;
    std::stop_token stop;
    ReadDone done;
  };
  Held take_oldest();

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<Held> held_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat::testing
