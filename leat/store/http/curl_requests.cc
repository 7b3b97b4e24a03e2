#include "leat/store/http/curl_requests.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "leat/store/http/host_book.h"

namespace leat {
namespace {

std::uint16_t port_of(const sockaddr& address) {
  return ntohs(address.sa_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                   : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

void set_port(sockaddr_storage& address, std::uint16_t port) {
  if (address.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  }
}

}  // namespace

CurlRequests::CurlRequests(const TransferSettings& settings, Poller& poller,
                           AddressBench& bench, Finish finish)
    : settings_(settings),
      poller_(poller),
      bench_(bench),
      finish_(std::move(finish)),
      multi_(curl_multi_init()) {
  if (multi_ == nullptr) return;
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlRequests::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlRequests::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS,
                    static_cast<long>(2 * settings_.options.max_in_flight + 8));
}

CurlRequests::~CurlRequests() {
  // Closes the connections, through close_socket().
  carriers_.clear();
  curl_multi_cleanup(multi_);
}

void CurlRequests::start(Transfer& transfer, std::string resolved) {
  const std::size_t slot = transfer.id.slot;
  if (slot >= carriers_.size()) carriers_.resize(slot + 1);
  if (carriers_[slot] == nullptr) {
    carriers_[slot] =
        std::make_unique<CurlTransfer>(transfer, settings_, *this);
  }
  CurlTransfer& carrier = *carriers_[slot];
  const TimePoint now = clock_.now();
  end_noisy_idle_ones();
  carrier.begin(std::move(resolved), now);
  const CURLMcode code = curl_multi_add_handle(multi_, carrier.easy());
  if (code != CURLM_OK) {
    carrier.clear();
    return finish_(transfer, transfer.error(ErrorCode::kResourceExhausted,
                                            curl_multi_strerror(code)));
  }
  ++busy_;
  if (!next_look_) next_look_ = now + carrier.look_every();
}

/// Ends kept connections on which something has come: libcurl would take it for
/// the reply to the next request. It reuses none that is shut down.
void CurlRequests::end_noisy_idle_ones() {
  if (poll(idle_.data(), idle_.size(), 0) <= 0) return;
  for (const pollfd& one : idle_) {
    if (one.revents != 0) shutdown(one.fd, SHUT_RDWR);
  }
}

void CurlRequests::cancel(const Transfer& transfer) {
  const std::size_t slot = transfer.id.slot;
  if (slot >= carriers_.size() || carriers_[slot] == nullptr) return;
  release(*carriers_[slot]);
}

void CurlRequests::hear(const epoll_event& event) {
  int what = 0;
  if ((event.events & (EPOLLIN | EPOLLHUP)) != 0) what |= CURL_CSELECT_IN;
  if ((event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
  if ((event.events & EPOLLERR) != 0) what |= CURL_CSELECT_ERR;
  act(event.data.fd, what);
}

void CurlRequests::check() {
  const TimePoint now = clock_.now();
  if (curl_wakes_at_ && now >= *curl_wakes_at_) {
    curl_wakes_at_.reset();
    act(CURL_SOCKET_TIMEOUT, 0);
  }
  reap();
  if (next_look_ && now >= *next_look_) end_the_slow(now);
}

std::optional<TimePoint> CurlRequests::next_check() const {
  if (!curl_wakes_at_ || !next_look_) {
    return next_look_ ? next_look_ : curl_wakes_at_;
  }
  return std::min(*curl_wakes_at_, *next_look_);
}

void CurlRequests::end_the_slow(TimePoint now) {
  next_look_.reset();
  // Not a range-for: a `finish` may run anything.
  for (std::size_t i = 0; i < carriers_.size(); ++i) {
    CurlTransfer* const carrier = carriers_[i].get();
    if (carrier == nullptr || !carrier->is_busy()) continue;
    if (auto late = carrier->check(now)) {
      const CurlTransfer::Tried to = carrier->connected_to();
      bench_.put(to.address, to.port, now);
      finish(*carrier, *std::move(late));
    } else if (!next_look_) {
      next_look_ = now + carrier->look_every();
    }
  }
}

void CurlRequests::act(curl_socket_t socket, int events) {
  int running = 0;
  curl_multi_socket_action(multi_, socket, events, &running);
}

void CurlRequests::reap() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    CurlTransfer* carrier = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &carrier);
    if (code == CURLE_COULDNT_CONNECT && !carrier->tried().address.empty()) {
      bench_.put(carrier->tried().address, carrier->tried().port, clock_.now());
    }
    finish(*carrier, carrier->outcome(code));
  }
}

void CurlRequests::release(CurlTransfer& carrier) {
  if (!carrier.is_busy()) return;
  curl_multi_remove_handle(multi_, carrier.easy());
  carrier.clear();
  --busy_;
}

void CurlRequests::finish(CurlTransfer& carrier, Result<HttpReply> result) {
  release(carrier);
  finish_(carrier.transfer(), std::move(result));
}

std::string CurlRequests::turn_to_next(const HostAnswer& answer,
                                       curl_sockaddr& address) {
  const auto& all = answer.addresses;
  const std::size_t count = std::min(all.size(), kMostTold);
  const std::uint16_t port = port_of(address.addr);
  const TimePoint now = clock_.now();
  const HostAddress* next = nullptr;
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const HostAddress& one = all[next_address_++ % count];
    if (one.address.ss_family != address.family) continue;
    next = &one;
    // The second time round, any will do.
    if (i >= count || !bench_.has(one.text, port, now)) break;
  }
  if (next == nullptr) return {};
  sockaddr_storage with_port = next->address;
  set_port(with_port, port);
  std::memcpy(&address.addr, &with_port, next->size_bytes);
  address.addrlen = next->size_bytes;
  return next->text;
}

curl_socket_t CurlRequests::open_socket(CurlTransfer& carrier,
                                        curl_sockaddr& address) {
  const HostAnswer* const answer = carrier.transfer().addresses.get();
  // In turn over the family that the system prefers; the other family is
  // libcurl's second choice, and left as it came.
  if (answer != nullptr &&
      answer->addresses.front().address.ss_family == address.family) {
    const std::uint16_t port = port_of(address.addr);
    // libcurl asks again if the one before has failed.
    if (!carrier.tried().address.empty()) {
      bench_.put(carrier.tried().address, port, clock_.now());
    }
    carrier.tries({.address = turn_to_next(*answer, address), .port = port});
  }
  const int opened =
      socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
  if (opened < 0) return CURL_SOCKET_BAD;
  poller_.adopt(opened);
  if (settings_.metrics != nullptr) {
    settings_.metrics->add(Metric::kStoreConnections, 1);
  }
  return opened;
}

int CurlRequests::close_socket(curl_socket_t socket) {
  std::erase_if(idle_, [=](const pollfd& one) { return one.fd == socket; });
  poller_.forget(socket);
  return close(socket);
}

int CurlRequests::on_socket(CURL* /*easy*/, curl_socket_t socket, int what,
                            void* self, void* /*unused*/) {
  std::uint32_t events = 0;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) events |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) events |= EPOLLOUT;
  auto& requests = *static_cast<CurlRequests*>(self);
  requests.poller_.watch(socket, events);
  std::erase_if(requests.idle_,
                [=](const pollfd& one) { return one.fd == socket; });
  if (events == 0) {
    requests.idle_.push_back({.fd = socket, .events = POLLIN, .revents = 0});
  }
  return 0;
}

int CurlRequests::on_timer(CURLM* /*multi*/, long milliseconds, void* self) {
  auto& requests = *static_cast<CurlRequests*>(self);
  if (milliseconds < 0) {
    requests.curl_wakes_at_.reset();
  } else {
    requests.curl_wakes_at_ =
        requests.clock_.now() + std::chrono::milliseconds(milliseconds);
  }
  return 0;
}

}  // namespace leat
