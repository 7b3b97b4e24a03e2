#include "leat/index/catalogue_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/base/owned_fd.h"
#include "leat/base/system_error.h"
#include "leat/index/catalogue_folder.h"
#include "leat/runtime/trust.h"

namespace leat {
namespace {

class Mapping {
 public:
  Mapping(void* address, std::size_t size_bytes)
      : address_(address), size_bytes_(size_bytes) {}
  ~Mapping() { ::munmap(address_, size_bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::span<const std::byte> span() const {
    return {static_cast<const std::byte*>(address_), size_bytes_};
  }

 private:
  void* const address_;
  const std::size_t size_bytes_;
};

Result<Buffer> read_whole(int fd, std::uint64_t size_bytes) {
  Buffer bytes(size_bytes);
  std::size_t have = 0;
  while (have < size_bytes) {
    const ssize_t got = ::pread(fd, bytes.data() + have, size_bytes - have,
                                static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(errno, "reading");
    if (got == 0) {
      return corrupt("the file was cut while it was read");
    }
    have += static_cast<std::size_t>(got);
  }
  return bytes;
}

Result<void> write_whole(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_error(errno, "writing");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<Catalogue> open_file(const std::string& path,
                            const MapOptions& options) {
  LEAT_TRY(const OwnedFd file, open_own_file(path, O_RDONLY | O_NONBLOCK));
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return system_error(errno, "opening");
  if (!S_ISREG(info.st_mode)) {
    return invalid("not a file");
  }
  const auto size_bytes = static_cast<std::uint64_t>(info.st_size);
  if (size_bytes <= options.most_copied_bytes) {
    LEAT_TRY(Buffer bytes, read_whole(file.get(), size_bytes));
    auto held = std::make_shared<const Buffer>(std::move(bytes));
    const auto span = held->span();
    return Catalogue::open(span, std::move(held));
  }
  void* const address =
      ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return system_error(errno, "mapping");
  auto held = std::make_shared<const Mapping>(address, size_bytes);
  const auto span = held->span();
  if (size_bytes > options.most_checked_bytes) {
    return Catalogue::open(span, std::move(held), CatalogueChecks::kStructure);
  }
  Result<Catalogue> checked = Catalogue::open(span, std::move(held));
  // Pages that were read only for the check need not stay resident.
  (void)::madvise(address, size_bytes, MADV_DONTNEED);
  return checked;
}

}  // namespace

MapOptions map_options_of(const Launch& launch) {
  MapOptions options;
  if (launch.local.rank != 0) options.most_checked_bytes = 0;
  return options;
}

Result<Catalogue> map_catalogue(const std::string& path,
                                const MapOptions& options) {
  Result<Catalogue> catalogue = open_file(path, options);
  if (catalogue) return catalogue;
  Error error = std::move(catalogue).error();
  if (error.code() == ErrorCode::kCorrupt) {
    return Error(error.code(),
                 fmt::format("{}: {}: remove the file, or make it again with "
                             "`leat index --refresh`",
                             path, error.message()));
  }
  return std::move(error).while_doing(path);
}

std::chrono::sys_seconds written_at(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return std::chrono::sys_seconds(std::chrono::seconds(info.st_mtim.tv_sec));
}

Result<void> write_catalogue(const std::string& path,
                             std::span<const std::byte> bytes) {
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  LEAT_TRY_VOID(make_own_folder(folder));
  std::string temporary = path + ".XXXXXX";
  const OwnedFd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) {
    return system_error(errno,
                        fmt::format("making a file in {}", folder.string()));
  }
  Result<void> written = write_whole(file.get(), bytes);
  if (written && ::fsync(file.get()) != 0) {
    written = system_error(errno, "writing");
  }
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = system_error(errno, "renaming");
  }
  if (!written) {
    ::unlink(temporary.c_str());
    return std::move(written).error().while_doing(path);
  }
  return {};
}

std::optional<std::string> catalogue_cache_path(std::string_view identity,
                                                const Env& env) {
  const auto folder = catalogue_folder(env);
  if (!folder) return std::nullopt;
  const std::string catalogues = *folder + "/catalogues";
  if (!is_trusted_folder(catalogues, "the folder of kept catalogues")) {
    return std::nullopt;
  }
  return fmt::format("{}/{}.leatcat", catalogues,
                     xxh3_128(as_bytes(identity)).hex());
}

}  // namespace leat
