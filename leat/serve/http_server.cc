#include "leat/serve/http_server.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/runtime/thread_name.h"
#include "leat/serve/connection.h"

namespace leat {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Failure = boost::system::error_code;

constexpr std::chrono::milliseconds kGrace{500};
constexpr std::chrono::milliseconds kAcceptAgain{20};
constexpr int kBacklog = 4096;

/// In this thread: sendfile() to a client that has gone is an error like any
/// other, also in a program that has not said so of the signal.
void block_broken_pipes() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

/// Looks again and again which clients of a loop try its patience. In the loop,
/// which so outlives it.
class Watch final : public Delayed, public std::enable_shared_from_this<Watch> {
 public:
  Watch(ServerLoop& loop, Nanoseconds patience)
      : loop_(loop), patience_(patience) {}

  void begin() {
    loop_.loop.at(SteadyClock().now() + patience_ / 2, shared_from_this());
  }

 private:
  void on_due() override {}
  void after_due() override {
    const TimePoint then = SteadyClock().now() - patience_;
    const auto connections = loop_.connections;  // Closing one changes the set.
    for (ServerConnection* connection : connections) {
      connection->close_if_owing_since(then);
    }
    begin();
  }

  ServerLoop& loop_;
  const Nanoseconds patience_;
};

class Server final : public HttpServer {
 public:
  Server(const HttpServerOptions& options, HttpService& service)
      : shared_(std::make_shared<ServerShared>(service)),
        patience_(options.patience),
        most_on_a_loop_((options.most_connections + options.threads - 1) /
                        options.threads),
        name_(options.thread_name) {
    shared_->connection_bytes_per_second = options.connection_bytes_per_second;
    if (options.total_bytes_per_second > 0) {
      shared_->total.emplace(options.total_bytes_per_second);
    }
    for (std::size_t i = 0; i < options.threads; ++i) {
      loops_.push_back(std::make_shared<ServerLoop>());
    }
    acceptor_.emplace(loops_[0]->loop.context());
    pause_.emplace(loops_[0]->loop.context());
  }

  ~Server() override {
    if (threads_.empty()) return;
    asio::post(loops_[0]->loop.context(), [this] {
      Failure ignored;
      acceptor_->close(ignored);
      pause_->cancel();
    });
    on_every_loop(&close_idle);
    wait_until_closed();
    on_every_loop(&close_all);
    wait_until_closed();
    for (const auto& loop : loops_) loop->loop.context().stop();
  }

  Result<void> use_tls(const TlsIdentity& identity) {
    Failure failure;
    auto& tls = shared_->tls.emplace(asio::ssl::context::tls_server);
    tls.set_options(asio::ssl::context::no_tlsv1 |
                    asio::ssl::context::no_tlsv1_1);
    tls.use_certificate_chain(asio::buffer(identity.certificate_pem), failure);
    if (!failure) {
      tls.use_private_key(asio::buffer(identity.key_pem),
                          asio::ssl::context::pem, failure);
    }
    if (!failure) return {};
    return invalid("the certificate and key for TLS cannot be used: " +
                   failure.message());
  }

  Result<void> listen(const std::string& host, std::uint16_t port) {
    Failure failure;
    const auto address = asio::ip::make_address(host, failure);
    if (failure) {
      return invalid(
          "host {} is not an IP address; give one of this machine, such as "
          "127.0.0.1 or 0.0.0.0",
          host);
    }
    const tcp::endpoint endpoint(address, port);
    acceptor_->open(endpoint.protocol(), failure);
    if (!failure) acceptor_->set_option(tcp::acceptor::reuse_address(true));
    if (!failure) acceptor_->bind(endpoint, failure);
    if (!failure) acceptor_->listen(kBacklog, failure);
    if (!failure) return {};
    return unavailable(
        "cannot listen on {} port {}: {}; choose another port, or 0 for a free "
        "one",
        host, port, failure.message());
  }

  void start() {
    accept();
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      std::make_shared<Watch>(*loops_[i], patience_)->begin();
      threads_.emplace_back([this, i] {
        name_this_thread(fmt::format("{}-{}", name_, i));
        block_broken_pipes();
        loops_[i]->loop.run();
      });
    }
  }

  std::uint16_t port() const override {
    return acceptor_->local_endpoint().port();
  }
  std::uint64_t open_connections() const override {
    MutexLock lock(shared_->mutex);
    return shared_->open;
  }
  std::uint64_t accepted_connections() const override {
    return shared_->accepted.load(std::memory_order_relaxed);
  }

 private:
  /// Lends the loop: a handler that is never run must not keep its own context.
  void on_every_loop(void (*action)(ServerLoop&)) {
    for (const auto& loop : loops_) {
      asio::post(loop->loop.context(),
                 [action, lent = loop.get()] { action(*lent); });
    }
  }

  static void close_idle(ServerLoop& loop) {
    const auto connections = loop.connections;  // Closing one changes the set.
    for (ServerConnection* connection : connections) {
      connection->close_when_idle();
    }
  }

  static void close_all(ServerLoop& loop) {
    const auto connections = loop.connections;
    for (ServerConnection* connection : connections) connection->close_now();
    loop.loop.drop_waiting();
  }

  void wait_until_closed() {
    const auto deadline = std::chrono::steady_clock::now() + kGrace;
    MutexLock lock(shared_->mutex);
    while (shared_->open != 0) {
      if (shared_->changed.wait_until(lock, deadline) ==
          std::cv_status::timeout)
        return;
    }
  }

  void accept() {
    const std::size_t i = next_loop_++ % loops_.size();
    auto socket = std::make_shared<LoopSocket>(loops_[i]->loop.context());
    acceptor_->async_accept(*socket, [this, i, socket](const Failure& failure) {
      if (failure == asio::error::operation_aborted) return;
      if (failure) return accept_later();
      shared_->accepted.fetch_add(1, std::memory_order_relaxed);
      asio::dispatch(loops_[i]->loop.context(), [this, i, socket] {
        make_room(*loops_[i]);
        start_connection(std::move(*socket), loops_[i], shared_);
      });
      accept();
    });
  }

  /// On the loop's thread.
  void make_room(ServerLoop& loop) const {
    if (most_on_a_loop_ == 0 || loop.connections.size() < most_on_a_loop_) {
      return;
    }
    (*std::ranges::min_element(loop.connections, {},
                               &ServerConnection::last_heard))
        ->close_now();
  }

  /// Out of descriptors: they come back when connections close.
  void accept_later() {
    pause_->expires_after(kAcceptAgain);
    pause_->async_wait([this](const Failure& failure) {
      if (!failure) accept();
    });
  }

  const std::shared_ptr<ServerShared> shared_;
  const Nanoseconds patience_;
  const std::size_t most_on_a_loop_;
  const std::string name_;
  std::vector<std::shared_ptr<ServerLoop>> loops_;
  std::optional<tcp::acceptor> acceptor_;
  std::optional<asio::steady_timer> pause_;
  std::size_t next_loop_ = 0;
  std::vector<std::jthread> threads_;  // Last: joined before the rest dies.
};

}  // namespace

Result<std::unique_ptr<HttpServer>> open_http_server(
    const HttpServerOptions& options, HttpService& service) {
  if (options.threads == 0) {
    return invalid("a server needs a thread");
  }
  if (options.patience <= Nanoseconds(0)) {
    return invalid("a server needs some patience");
  }
  auto server = std::make_unique<Server>(options, service);
  if (options.tls) LEAT_TRY_VOID(server->use_tls(*options.tls));
  LEAT_TRY_VOID(server->listen(options.host, options.port));
  server->start();
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace leat
