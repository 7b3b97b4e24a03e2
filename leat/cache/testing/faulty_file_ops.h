// The system's file calls, which fail or dawdle when told to.
#pragma once
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>

#include "leat/cache/file_ops.h"

namespace leat::testing {

enum class FileCall : std::uint8_t {
  kOpen,
  kPread,
  kPwrite,
  kPunch,
  kUnlink,
  kMap
};

/// Asks a script before each call: 0 lets it through, a negated errno is what
/// the call answers. The script may take its time.
///
/// Threads: any; set_script() too.
class FaultyFileOps final : public SystemFileOps {
 public:
  using Script = std::function<int(FileCall call)>;

  /// REQUIRES: no call is under way.
  void set_script(Script script) { script_ = std::move(script); }
  /// Fails every `call` with `error` (positive) from now on.
  void fail(FileCall call, int error) {
    set_script([=](FileCall made) { return made == call ? -error : 0; });
  }
  void heal() { set_script(nullptr); }
  /// From now on nothing can be mapped, with any script.
  void refuse_maps() { refuses_maps_ = true; }
  std::uint64_t calls() const { return calls_; }

  int open(const std::string& path, int flags, mode_t mode) override {
    const int error = ask(FileCall::kOpen);
    return error != 0 ? error : SystemFileOps::open(path, flags, mode);
  }
  ssize_t pread(int fd, std::span<std::byte> into,
                std::uint64_t offset) override {
    const int error = ask(FileCall::kPread);
    return error != 0 ? error : SystemFileOps::pread(fd, into, offset);
  }
  ssize_t pwrite(int fd, std::span<const std::byte> bytes,
                 std::uint64_t offset) override {
    const int error = ask(FileCall::kPwrite);
    return error != 0 ? error : SystemFileOps::pwrite(fd, bytes, offset);
  }
  int punch(int fd, std::uint64_t offset, std::uint64_t length) override {
    const int error = ask(FileCall::kPunch);
    return error != 0 ? error : SystemFileOps::punch(fd, offset, length);
  }
  int unlink(const std::string& path) override {
    const int error = ask(FileCall::kUnlink);
    return error != 0 ? error : SystemFileOps::unlink(path);
  }
  int map(int fd, std::uint64_t length, Mapping& mapping) override {
    if (refuses_maps_) return -ENOMEM;
    const int error = ask(FileCall::kMap);
    return error != 0 ? error : SystemFileOps::map(fd, length, mapping);
  }

 private:
  int ask(FileCall call) {
    ++calls_;
    return script_ ? script_(call) : 0;
  }

  Script script_;
  bool refuses_maps_ = false;
  std::atomic<std::uint64_t> calls_ = 0;
};

}  // namespace leat::testing
