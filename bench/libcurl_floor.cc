// The cost of libcurl alone: the same GETs as `leat bench`, by a bare loop
// around one CURLM and epoll, into memory that is reused. No retries, no plan,
// no checks but of the size. fetch_bench.py sets it beside Leat's own loop.
//
//   libcurl_floor URL COUNT OBJECT-BYTES IN-FLIGHT PASSES [CA-BUNDLE]
//
// GETs URL/000000, URL/000001, ... each COUNT of a pass once. Prints one line
// of JSON about the last pass: requests, seconds, cpu_seconds.

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Job {
  std::string url;
  int count = 0;
  std::size_t object_bytes = 0;
  int in_flight = 0;
  int passes = 0;
  std::string ca_bundle;
};

[[noreturn]] void die(const std::string& why) {
  std::fputs(fmt::format("libcurl_floor: {}\n", why).c_str(), stderr);
  std::exit(1);
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) +
           1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Transfer {
  CURL* easy = nullptr;
  std::vector<char> body;
  std::size_t received = 0;
};

std::size_t on_body(char* bytes, std::size_t /*one*/, std::size_t size,
                    void* into) {
  auto& transfer = *static_cast<Transfer*>(into);
  if (size > transfer.body.size() - transfer.received) return 0;
  std::memcpy(transfer.body.data() + transfer.received, bytes, size);
  transfer.received += size;
  return size;
}

class Loop {
 public:
  explicit Loop(const Job& job);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  /// Every object once.
  void run_pass();

 private:
  void start(Transfer& transfer);
  void reap();
  void watch(curl_socket_t socket, int what);
  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self,
                       void* unused);
  static int on_timer(CURLM* multi, long milliseconds, void* self);

  const Job& job_;
  CURLM* multi_ = curl_multi_init();
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  long wait_milliseconds_ = -1;
  std::unordered_map<curl_socket_t, int> watched_;
  std::vector<Transfer> transfers_;
  int next_ = 0;
  int done_ = 0;
};

Loop::Loop(const Job& job)
    : job_(job), transfers_(static_cast<std::size_t>(job.in_flight)) {
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Loop::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Loop::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 2L * job.in_flight);
  for (Transfer& transfer : transfers_) {
    transfer.body.resize(job.object_bytes);
    transfer.easy = curl_easy_init();
    curl_easy_setopt(transfer.easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(transfer.easy, CURLOPT_PRIVATE, &transfer);
    curl_easy_setopt(transfer.easy, CURLOPT_WRITEFUNCTION, &on_body);
    curl_easy_setopt(transfer.easy, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(transfer.easy, CURLOPT_HTTP_VERSION,
                     CURL_HTTP_VERSION_1_1);
    // The best of 16, 48 and 256 KiB for large ones; more would be for nothing.
    curl_easy_setopt(transfer.easy, CURLOPT_BUFFERSIZE,
                     job.object_bytes < 16384 ? 8192L : 49152L);
    if (!job.ca_bundle.empty()) {
      curl_easy_setopt(transfer.easy, CURLOPT_CAINFO, job.ca_bundle.c_str());
    }
  }
}

Loop::~Loop() {
  for (Transfer& transfer : transfers_) curl_easy_cleanup(transfer.easy);
  curl_multi_cleanup(multi_);
}

void Loop::run_pass() {
  next_ = 0;
  done_ = 0;
  for (Transfer& transfer : transfers_) start(transfer);
  std::array<epoll_event, 256> events{};
  while (done_ < job_.count) {
    const int timeout =
        static_cast<int>(std::clamp(wait_milliseconds_, -1L, 60'000L));
    const int ready = epoll_wait(epoll_, events.data(),
                                 static_cast<int>(events.size()), timeout);
    int running = 0;
    if (ready == 0) {
      wait_milliseconds_ = -1;  // It fires once, and is set again if need be.
      curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      int what = 0;
      if ((event.events & (EPOLLIN | EPOLLHUP)) != 0) what |= CURL_CSELECT_IN;
      if ((event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
      if ((event.events & EPOLLERR) != 0) what |= CURL_CSELECT_ERR;
      curl_multi_socket_action(multi_, event.data.fd, what, &running);
    }
    reap();
  }
}

void Loop::start(Transfer& transfer) {
  if (next_ >= job_.count) return;
  const std::string url = fmt::format("{}/{:06}", job_.url, next_++);
  curl_easy_setopt(transfer.easy, CURLOPT_URL, url.c_str());
  transfer.received = 0;
  curl_multi_add_handle(multi_, transfer.easy);
}

void Loop::reap() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    const CURLcode code = message->data.result;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    long status = 0;
    curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK) die(curl_easy_strerror(code));
    if (status != 200 || transfer->received != job_.object_bytes) {
      die(fmt::format("HTTP {}, {} bytes", status, transfer->received));
    }
    curl_multi_remove_handle(multi_, transfer->easy);
    ++done_;
    start(*transfer);
  }
}

void Loop::watch(curl_socket_t socket, int what) {
  epoll_event event{};
  event.data.fd = socket;
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, &event);
    watched_.erase(socket);
    return;
  }
  if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
  const auto [known, is_new] = watched_.try_emplace(socket, 0);
  if (known->second == what) return;
  known->second = what;
  epoll_ctl(epoll_, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event);
}

int Loop::on_socket(CURL* /*easy*/, curl_socket_t socket, int what, void* self,
                    void* /*unused*/) {
  static_cast<Loop*>(self)->watch(socket, what);
  return 0;
}

int Loop::on_timer(CURLM* /*multi*/, long milliseconds, void* self) {
  static_cast<Loop*>(self)->wait_milliseconds_ = milliseconds;
  return 0;
}

int run(const Job& job) {
  using Clock = std::chrono::steady_clock;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  Loop loop(job);
  for (int pass = 1; pass < job.passes; ++pass) loop.run_pass();
  const double cpu = cpu_seconds();
  const Clock::time_point begin = Clock::now();
  loop.run_pass();
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  std::fputs(
      fmt::format(
          R"({{"requests": {}, "seconds": {:.6f}, "cpu_seconds": {:.6f}}})"
          "\n",
          job.count, seconds.count(), cpu_seconds() - cpu)
          .c_str(),
      stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 7) {
    die("URL COUNT OBJECT-BYTES IN-FLIGHT PASSES [CA-BUNDLE]");
  }
  return run({.url = argv[1],
              .count = std::atoi(argv[2]),
              .object_bytes = std::strtoul(argv[3], nullptr, 10),
              .in_flight = std::atoi(argv[4]),
              .passes = std::atoi(argv[5]),
              .ca_bundle = argc == 7 ? argv[6] : ""});
}
