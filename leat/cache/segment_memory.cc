#include <cerrno>

#include "leat/cache/sealed_memory.h"
#include "leat/cache/segment_files.h"

namespace leat {
namespace {

class SegmentMemory final : public SegmentFiles {
 public:
  explicit SegmentMemory(FileOps& ops) : ops_(ops) {}

  Result<Opened> create(const SegmentHeader& header) override {
    const int fd = make_sealed_memory();
    if (fd < 0) return file_error(fd, "making memory for the RAM tier");
    Opened made{.fd = OwnedFd(fd), .is_writable = true};
    const int error = write_all(ops_, fd, encode(header), 0);
    if (error != 0) return file_error(error, "writing to the RAM tier");
    return made;
  }
  Result<std::vector<std::uint64_t>> list() override {
    return std::vector<std::uint64_t>();
  }
  Result<Opened> open(std::uint64_t /*id*/) override {
    return file_error(-ENOENT, "opening another's memory");
  }
  void remove(std::uint64_t /*id*/) override {}  // Gone with its descriptor.
  bool is_removed(int /*fd*/) const override { return false; }
  std::string where() const override { return "memory"; }

 private:
  FileOps& ops_;
};

}  // namespace

std::unique_ptr<SegmentFiles> open_segment_memory(FileOps& ops) {
  return std::make_unique<SegmentMemory>(ops);
}

}  // namespace leat
