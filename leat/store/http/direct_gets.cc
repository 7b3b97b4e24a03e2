#include "leat/store/http/direct_gets.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "leat/store/http/request_head.h"

namespace leat {
namespace {

/// S3 closes connections that are idle for about 5 s; one that is about to be
/// closed is not worth trying.
constexpr std::chrono::seconds kMostIdle{4};

HostAddress address_of(const std::string& text) {
  HostAddress address{.text = text};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.address);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.address);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    address.size_bytes = sizeof *v4;
  } else {
    inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr);
    v6->sin6_family = AF_INET6;
    address.size_bytes = sizeof *v6;
  }
  return address;
}

/// The order in which addresses are tried: those of the wanted family and the
/// others in turn, either from its `turn`-th on.
std::vector<HostAddress> in_turn(const std::vector<HostAddress>& addresses,
                                 int family, std::size_t turn) {
  std::array<std::vector<HostAddress>, 2> families;
  for (const HostAddress& address : addresses) {
    families[address.address.ss_family == family ? 0 : 1].push_back(address);
  }
  std::vector<HostAddress> order;
  order.reserve(addresses.size());
  for (std::size_t i = 0; order.size() < addresses.size(); ++i) {
    for (const auto& alike : families) {
      if (i < alike.size()) order.push_back(alike[(turn + i) % alike.size()]);
    }
  }
  return order;
}

}  // namespace

DirectGets::DirectGets(const TransferSettings& settings, Poller& poller,
                       Finish finish)
    : settings_(settings),
      finish_(std::move(finish)),
      sockets_(poller, settings.metrics) {}

bool DirectGets::takes(const HttpRequest& request) const {
  return !settings_.uses_proxy && request.method == "GET" &&
         request.body.empty();
}

void DirectGets::start(Transfer& transfer, const HttpUrl& url) {
  const HttpRequest& request = transfer.submission.request;
  if (auto checked = check_headers(request); !checked) {
    return finish_(transfer, std::move(checked).error());
  }
  ConnectTarget target{.host = std::string(url.host),
                       .port = url.port,
                       .is_tls = url.is_tls,
                       .host_is_address = url.host_is_address};
  std::string head = request_head(request, url);
  DirectConnection* const idle = take_idle(target);
  if (idle == nullptr) {
    return open(transfer, std::move(target), std::move(head));
  }
  settle(*idle, idle->carry(transfer, std::move(head), clock_.now()));
}

DirectConnection* DirectGets::take_idle(const ConnectTarget& target) {
  const TimePoint now = clock_.now();
  for (std::size_t i = idle_.size(); i-- > 0;) {
    const auto [connection, since] = idle_[i];
    if (now - since >= kMostIdle) return nullptr;  // And so are all before it.
    if (connection->target() != target) continue;
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    return connection;
  }
  return nullptr;
}

Result<ConnectPlan> DirectGets::plan_for(const Transfer& transfer,
                                         ConnectTarget target) {
  ConnectPlan plan{
      .connect_until = clock_.now() + settings_.options.connect_timeout,
      .stall_timeout = settings_.options.stall_timeout};
  if (target.host_is_address) {
    plan.addresses = {address_of(target.host)};
  } else {
    const auto& addresses = transfer.addresses->addresses;
    const int family =
        family_ != 0 ? family_ : addresses.front().address.ss_family;
    plan.addresses = in_turn(addresses, family, turn_++);
  }
  if (target.is_tls) {
    if (!tls_) {
      LEAT_TRY(tls_, TlsClient::open(settings_.ca_bundle));
    }
    plan.tls = &*tls_;
  }
  plan.target = std::move(target);
  return plan;
}

void DirectGets::open(Transfer& transfer, ConnectTarget target,
                      std::string head) {
  auto plan = plan_for(transfer, std::move(target));
  if (!plan) {
    return finish_(transfer,
                   transfer.error(plan.error().code(), plan.error().message()));
  }
  connections_.push_back(
      std::make_unique<DirectConnection>(*std::move(plan), sockets_));
  DirectConnection& connection = *connections_.back();
  settle(connection, connection.carry(transfer, std::move(head), clock_.now()));
}

void DirectGets::settle(DirectConnection& connection,
                        std::optional<DirectConnection::Verdict> verdict) {
  if (!verdict) return expect_check(connection.deadline());
  if (connection.has_connected()) family_ = connection.family();
  Transfer& transfer = *connection.transfer();
  std::string head = connection.release();
  note(*verdict);
  if (verdict->was_stale) {
    const ConnectTarget target = connection.target();
    drop(connection);
    return open(transfer, target, std::move(head));
  }
  if (verdict->can_keep) {
    const TimePoint now = clock_.now();
    idle_.push_back({&connection, now});
    expect_check(now + kMostIdle);
  } else {
    drop(connection);
  }
  finish_(transfer, std::move(verdict->reply));
}

void DirectGets::note(const DirectConnection::Verdict& verdict) {
  const auto& notes = settings_.options.notes;
  if (notes == nullptr || verdict.was_stale) return;
  if (verdict.reply) {
    notes->note_reply(verdict.can_keep, verdict.reply->until_first_byte);
  } else if (verdict.reply.error().code() == ErrorCode::kDeadlineExceeded) {
    notes->note_late();
  }
}

void DirectGets::cancel(const Transfer& transfer) {
  for (const auto& connection : connections_) {
    if (connection->transfer() == &transfer) return drop(*connection);
  }
}

void DirectGets::drop(DirectConnection& connection) {
  std::erase_if(
      idle_, [&](const Idle& idle) { return idle.connection == &connection; });
  std::erase_if(connections_,
                [&](const auto& one) { return one.get() == &connection; });
}

bool DirectGets::hear(int fd) {
  DirectConnection* const connection = sockets_.at(fd);
  if (connection == nullptr) return false;
  if (connection->transfer() == nullptr) {
    drop(*connection);  // Most likely the server has closed it.
  } else {
    settle(*connection, connection->step(clock_.now()));
  }
  return true;
}

void DirectGets::expect_check(TimePoint at) {
  if (!next_check_ || at < *next_check_) next_check_ = at;
}

void DirectGets::check() {
  const TimePoint now = clock_.now();
  if (!next_check_ || now < *next_check_) return;
  next_check_.reset();
  while (!idle_.empty() && now - idle_.front().since >= kMostIdle) {
    drop(*idle_.front().connection);
  }
  if (!idle_.empty()) expect_check(idle_.front().since + kMostIdle);
  // From behind, since settling may remove the one it is at.
  for (std::size_t i = connections_.size(); i-- > 0;) {
    DirectConnection& connection = *connections_[i];
    if (connection.transfer() == nullptr) continue;
    settle(connection, connection.check(now));
  }
}

}  // namespace leat
