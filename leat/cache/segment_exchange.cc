// The conversation: a client connects, sends an id, and gets the descriptor of
// that segment; for id 0 it gets the ids of all segments. One question a
// connection, answered at once.
//
// A lock belongs to an open file, and a descriptor that is sent shares it. So
// what is sent is opened anew by /proc/self/fd: it can be locked once the
// writer is gone, and not before.

#include "leat/cache/segment_exchange.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/cache/exchange_folder.h"
#include "leat/cache/sealed_memory.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

constexpr std::uint64_t kAskForIds = 0;
constexpr std::size_t kMostIds = 4096;
constexpr int kOutOfDescriptorsMs = 200;

void be_impatient(int fd, Nanoseconds patience) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(patience);
  const auto rest =
      std::chrono::duration_cast<std::chrono::microseconds>(patience - whole);
  const timeval wait{.tv_sec = whole.count(), .tv_usec = rest.count()};
  (void)::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  (void)::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
}

bool is_same_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

/// Sends `bytes`, and `fd` beside them unless it is negative.
bool send_message(int to, std::span<const std::byte> bytes, int fd) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return ::sendmsg(to, &message, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

/// Receives one message; its descriptor, if one came with it, into `fd`.
ssize_t receive_message(int from, std::span<std::byte> into, OwnedFd& fd) {
  iovec part{into.data(), into.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(from, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = got < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET &&
      header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int raw = -1;
    std::memcpy(&raw, CMSG_DATA(header), sizeof raw);
    fd = OwnedFd(raw);
  }
  return got;
}

std::span<const std::byte> bytes_of(const std::uint64_t& number) {
  return std::as_bytes(std::span(&number, 1));
}

/// Another process, as its last answer shows it.
struct Peer {
  std::vector<std::uint64_t> ids;
  bool is_gone = false;  ///< Its socket is not there any more.
};

/// The segments that this process may hand out, by id.
class Shelf {
 public:
  void put(std::uint64_t id, int fd) {
    const MutexLock lock(mutex_);
    fds_[id] = OwnedFd(fd);
  }
  void take(std::uint64_t id) {
    const MutexLock lock(mutex_);
    fds_.erase(id);
  }
  std::vector<std::uint64_t> ids() const {
    const MutexLock lock(mutex_);
    std::vector<std::uint64_t> ids;
    ids.reserve(fds_.size());
    for (const auto& [id, fd] : fds_) ids.push_back(id);
    return ids;
  }
  /// The same file opened anew, with no lock on it.
  OwnedFd open_anew(std::uint64_t id) const {
    const MutexLock lock(mutex_);
    const auto found = fds_.find(id);
    if (found == fds_.end()) return OwnedFd();
    return OwnedFd(
        ::open(fmt::format("/proc/self/fd/{}", found->second.get()).c_str(),
               O_RDWR | O_CLOEXEC));
  }

 private:
  mutable Mutex mutex_;
  std::map<std::uint64_t, OwnedFd> fds_ LEAT_GUARDED_BY(mutex_);
};

class SegmentExchange final : public SegmentFiles {
 public:
  SegmentExchange(std::string folder, std::string socket_path, OwnedFd listener,
                  FileOps& ops, Nanoseconds patience)
      : folder_(std::move(folder)),
        socket_path_(std::move(socket_path)),
        listener_(std::move(listener)),
        ops_(ops),
        patience_(patience),
        server_(start_thread([this](const std::stop_token& stop) {
          name_this_thread("leat-cache-hand");
          serve(stop);
        })) {}

  ~SegmentExchange() override {
    server_.request_stop();
    ::shutdown(listener_.get(), SHUT_RDWR);  // Wakes it from accept().
    server_.join();
    (void)ops_.unlink(socket_path_);
    (void)::rmdir(folder_.c_str());  // The last one out.
  }

  Result<Opened> create(const SegmentHeader& header) override {
    const int fd = make_sealed_memory();
    if (fd < 0) return file_error(fd, "making memory for the RAM tier");
    Opened made{.fd = OwnedFd(fd), .is_writable = true};
    if (!try_lock_segment(made.fd.get()))
      return file_error(-errno, "locking new memory");
    const int error = write_all(ops_, made.fd.get(), encode(header), 0);
    if (error != 0) return file_error(error, "writing to the RAM tier");
    keep(header.id, made.fd.get());
    return made;
  }

  Result<std::vector<std::uint64_t>> list() override {
    std::set<std::uint64_t> ids;
    for (const std::uint64_t id : shelf_.ids()) ids.insert(id);
    std::map<std::string, Peer> heard;
    for (const std::string& path : sockets()) {
      if (auto theirs = ask_for_ids(path)) {
        heard[path] = {.ids = *std::move(theirs)};
      } else if (const auto known = peers_.find(path); known != peers_.end()) {
        heard[path] = known->second;  // Busy: its last answer still holds.
      }
    }
    // So does that of a rank that is gone, for who has opened its segments.
    for (auto& [path, peer] : peers_) {
      if (heard.contains(path)) continue;
      std::erase_if(peer.ids, [&](auto id) { return removed_.contains(id); });
      if (peer.ids.empty()) continue;
      heard[path] = {.ids = std::move(peer.ids), .is_gone = true};
    }
    peers_ = std::move(heard);
    for (const auto& [path, peer] : peers_) {
      ids.insert(peer.ids.begin(), peer.ids.end());
    }
    for (const std::uint64_t id : removed_) ids.erase(id);
    return std::vector<std::uint64_t>(ids.begin(), ids.end());
  }

  Result<Opened> open(std::uint64_t id) override {
    for (auto& [path, peer] : peers_) {
      const auto at = std::ranges::find(peer.ids, id);
      if (at == peer.ids.end()) continue;
      if (peer.is_gone) {  // It hands out nothing, and we do not hold this one.
        peer.ids.erase(at);
        continue;
      }
      Opened opened{.fd = ask_for_segment(path, id), .is_writable = true};
      if (opened.fd) return opened;
    }
    return file_error(-ENOENT, "opening another rank's memory");
  }

  void taken_over(std::uint64_t id, int fd) override { keep(id, fd); }

  // Others may still hold it: without its pages it takes no memory, and its
  // records are misses. It cannot be cut off, because others have mapped it.
  void remove(std::uint64_t id) override {
    const OwnedFd fd = shelf_.open_anew(id);
    struct stat now {};
    if (fd && ::fstat(fd.get(), &now) == 0 && now.st_size > 0) {
      (void)ops_.punch(fd.get(), 0,
                       whole_pages(static_cast<std::uint64_t>(now.st_size)));
    }
    shelf_.take(id);
    removed_.insert(id);
  }

  bool is_removed(int fd) const override {
    SegmentBlock block;  // The header went with the rest.
    const int error = read_all(ops_, fd, block, 0);
    // No other one counts: its writer may be writing it right now.
    return error == -ENODATA || (error == 0 && block == SegmentBlock{});
  }

  std::optional<OwnedFd> lock_leases() override {
    return lock_folder(folder_, ops_);
  }

  std::string where() const override { return "memory, shared in " + folder_; }

 private:
  void keep(std::uint64_t id, int fd) {
    // Opened anew, or our lock would live as long as this copy.
    const int copy =
        ::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDWR | O_CLOEXEC);
    if (copy >= 0) shelf_.put(id, copy);
  }

  std::vector<std::string> sockets() const {
    std::vector<std::string> paths;
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder_, error), end;
         !error && at != end; at.increment(error)) {
      const std::string path = at->path().string();
      if (path != socket_path_ && path.ends_with(kSocketSuffix)) {
        paths.push_back(path);
      }
    }
    return paths;
  }

  /// A connection to another rank, which has been asked `question`.
  OwnedFd ask(const std::string& path, std::uint64_t question) {
    const auto address = socket_address(path);
    if (!address) return OwnedFd();
    OwnedFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!fd) return OwnedFd();
    be_impatient(fd.get(), patience_);
    if (::connect(fd.get(), as_sockaddr(*address), sizeof *address) != 0) {
      if (errno == ECONNREFUSED) (void)ops_.unlink(path);  // Its owner is dead.
      return OwnedFd();
    }
    if (!is_same_user(fd.get()) ||
        !send_message(fd.get(), bytes_of(question), -1)) {
      return OwnedFd();
    }
    return fd;
  }

  std::optional<std::vector<std::uint64_t>> ask_for_ids(
      const std::string& path) {
    const OwnedFd fd = ask(path, kAskForIds);
    if (!fd) return std::nullopt;
    std::vector<std::uint64_t> ids(kMostIds);
    OwnedFd unwanted;
    const ssize_t got = receive_message(
        fd.get(), std::as_writable_bytes(std::span(ids)), unwanted);
    if (got < 0) return std::nullopt;
    ids.resize(static_cast<std::size_t>(got) / sizeof ids[0]);
    return ids;
  }

  OwnedFd ask_for_segment(const std::string& path, std::uint64_t id) {
    const OwnedFd fd = ask(path, id);
    if (!fd) return OwnedFd();
    OwnedFd segment;
    std::uint64_t answered = 0;
    (void)receive_message(
        fd.get(), std::as_writable_bytes(std::span(&answered, 1)), segment);
    return answered == id ? std::move(segment) : OwnedFd();
  }

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const OwnedFd fd(
          ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (stop.stop_requested()) return;
      if (!fd) {  // Out of descriptors, most likely: not all the time.
        (void)::poll(nullptr, 0, kOutOfDescriptorsMs);
        continue;
      }
      be_impatient(fd.get(), patience_);
      if (is_same_user(fd.get())) answer(fd.get());
    }
  }

  void answer(int fd) {
    std::uint64_t question = 0;
    OwnedFd unwanted;
    const ssize_t got = receive_message(
        fd, std::as_writable_bytes(std::span(&question, 1)), unwanted);
    if (got != static_cast<ssize_t>(sizeof question)) return;
    if (question == kAskForIds) {
      std::vector<std::uint64_t> ids = shelf_.ids();
      ids.resize(std::min(ids.size(), kMostIds));
      (void)send_message(fd, std::as_bytes(std::span(ids)), -1);
      return;
    }
    if (const OwnedFd segment = shelf_.open_anew(question)) {
      (void)send_message(fd, bytes_of(question), segment.get());
    }
  }

  const std::string folder_;
  const std::string socket_path_;
  const OwnedFd listener_;
  FileOps& ops_;
  const Nanoseconds patience_;
  Shelf shelf_;
  // The asker's own.
  std::map<std::string, Peer> peers_;
  std::set<std::uint64_t> removed_;
  std::jthread server_;  // Last: joined before the rest dies.
};

}  // namespace

Result<std::unique_ptr<SegmentFiles>> open_segment_exchange(
    const std::string& folder, FileOps& ops, Nanoseconds patience) {
  std::string path;
  LEAT_TRY(OwnedFd listener, listen_in(folder, path));
  return std::unique_ptr<SegmentFiles>(std::make_unique<SegmentExchange>(
      folder, path, std::move(listener), ops, patience));
}

}  // namespace leat
