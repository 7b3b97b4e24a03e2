#include "leat/store/http/direct_gets.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <utility>

#include "leat/runtime/log.h"
#include "leat/store/http/request_head.h"

namespace leat {
namespace {

/// S3 closes connections that are idle for about 5 s; one that is about to be
/// closed is not worth trying.
constexpr std::chrono::seconds kMostIdle{4};

/// One or two requests that wait may be slow replies.
constexpr std::size_t kSeveral = 3;
/// While others wait for a second, a store that is merely slow answers none so
/// soon.
constexpr std::chrono::milliseconds kSoon{250};

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
std::vector<HostAddress> in_turn_from(const std::vector<HostAddress>& addresses,
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

ConnectTarget target_of(const HttpUrl& url) {
  return {.host = std::string(url.host),
          .port = url.port,
          .is_tls = url.is_tls,
          .host_is_address = url.host_is_address};
}

/// A connection that has never answered may starve behind others.
TimePoint check_due_for(const DirectConnection& connection, TimePoint now) {
  const TimePoint due = connection.deadline();
  if (connection.replies().count != 0) return due;
  return std::min(due, now + DirectConnection::kStarvesAfter);
}

bool lead_to_one_server(const DirectConnection& a, const DirectConnection& b) {
  return a.target().port == b.target().port &&
         a.address().text == b.address().text;
}

/// It was kept after a reply, and answered again since then, and soon.
bool was_kept_and_answered(const DirectConnection& connection, TimePoint then) {
  const DirectConnection::Replies& replies = connection.replies();
  return replies.count > 1 && replies.last_at > then &&
         replies.last_took <= kSoon;
}

}  // namespace

DirectGets::DirectGets(const TransferSettings& settings, Poller& poller,
                       AddressBench& bench, Finish finish, Resume resume)
    : settings_(settings),
      bench_(bench),
      finish_(std::move(finish)),
      resume_(std::move(resume)),
      sockets_(poller, settings.metrics) {}

bool DirectGets::takes(const HttpRequest& request) const {
  return !settings_.uses_proxy && request.body.empty() &&
         (request.method == "GET" || request.method == "HEAD");
}

bool DirectGets::start_on_kept(Transfer& transfer, const HttpUrl& url) {
  DirectConnection* const kept = take_kept(transfer, target_of(url));
  if (kept == nullptr) return false;
  settle(*kept,
         kept->carry(transfer, request_head(transfer.submission.request, url),
                     clock_.now()));
  return true;
}

bool DirectGets::has_better(const Transfer& transfer,
                            const DirectConnection& connection) const {
  const TimePoint now = clock_.now();
  const auto is_benched = [&](const HostAddress& address) {
    return bench_.has(address.text, connection.target().port, now);
  };
  return transfer.addresses != nullptr && is_benched(connection.address()) &&
         !std::ranges::all_of(transfer.addresses->addresses, is_benched);
}

DirectConnection* DirectGets::take_kept(const Transfer& transfer,
                                        const ConnectTarget& target) {
  const TimePoint now = clock_.now();
  for (std::size_t i = idle_.size(); i-- > 0;) {
    const auto [connection, since] = idle_[i];
    if (now - since >= kMostIdle) return nullptr;  // And so are all before it.
    if (connection->target() != target || has_better(transfer, *connection)) {
      continue;
    }
    // A reply that nobody asked for would be taken for the next one.
    if (!connection->is_quiet()) {
      drop(*connection);
      continue;
    }
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    return connection;
  }
  return nullptr;
}

std::vector<HostAddress> DirectGets::in_turn(const Transfer& transfer,
                                             const ConnectTarget& target) {
  if (target.host_is_address) return {address_of(target.host)};
  const auto& addresses = transfer.addresses->addresses;
  const int family =
      family_ != 0 ? family_ : addresses.front().address.ss_family;
  const std::size_t turn = turn_++;
  const TimePoint now = clock_.now();
  std::array<std::vector<HostAddress>, 2> good_and_benched;
  for (const HostAddress& address : addresses) {
    const bool is_benched = bench_.has(address.text, target.port, now);
    good_and_benched[is_benched ? 1 : 0].push_back(address);
  }
  std::vector<HostAddress> order =
      in_turn_from(good_and_benched[0], family, turn);
  std::ranges::move(in_turn_from(good_and_benched[1], family, turn),
                    std::back_inserter(order));
  return order;
}

Result<ConnectPlan> DirectGets::plan_for(const Transfer& transfer,
                                         ConnectTarget target) {
  ConnectPlan plan;
  plan.addresses = in_turn(transfer, target);
  plan.connect_until = clock_.now() + settings_.options.connect_timeout;
  plan.bench = &bench_;
  if (target.is_tls) {
    if (!tls_) {
      LEAT_TRY(tls_, TlsClient::open(settings_.ca_bundle));
    }
    plan.tls = &*tls_;
  }
  plan.target = std::move(target);
  return plan;
}

void DirectGets::start(Transfer& transfer, const HttpUrl& url) {
  auto plan = plan_for(transfer, target_of(url));
  if (!plan) {
    return finish_(transfer,
                   transfer.error(plan.error().code(), plan.error().message()));
  }
  connections_.push_back(
      std::make_unique<DirectConnection>(*std::move(plan), sockets_));
  DirectConnection& connection = *connections_.back();
  settle(
      connection,
      connection.carry(transfer, request_head(transfer.submission.request, url),
                       clock_.now()));
}

void DirectGets::settle(DirectConnection& connection,
                        std::optional<DirectConnection::Verdict> verdict) {
  if (!verdict) return expect_check(check_due_for(connection, clock_.now()));
  if (connection.has_connected()) family_ = connection.family();
  Transfer& transfer = *connection.transfer();
  connection.release();
  const auto& notes = settings_.options.notes;
  if (notes != nullptr && notes->is_crowded(clock_.now()) &&
      !connection.target().is_tls) {
    verdict->can_keep = false;
  }
  note(*verdict);
  if (verdict->was_stale) {
    drop(connection);
    return resume_(transfer);
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
  relieve(now);
}

void DirectGets::drop_idle_beside(const DirectConnection& starving) {
  for (std::size_t i = idle_.size(); i-- > 0;) {
    DirectConnection& idle = *idle_[i].connection;
    if (lead_to_one_server(idle, starving)) drop(idle);
  }
}

void DirectGets::relieve(TimePoint now) {
  const auto starving = std::ranges::find_if(
      connections_, [now](const auto& one) { return one->starves(now); });
  if (starving == connections_.end()) return;
  const DirectConnection& first = **starving;
  std::size_t busy = 0;
  std::size_t starve = 0;
  bool are_kept_ones_served = false;
  for (const auto& one : connections_) {
    if (!lead_to_one_server(*one, first)) continue;
    busy += one->transfer() != nullptr ? 1 : 0;
    starve += one->starves(now) ? 1 : 0;
    are_kept_ones_served |= was_kept_and_answered(*one, first.begun_at());
  }
  // Several that wait beside one that was answered soon, and has nothing to do.
  const auto rest = std::ranges::count_if(idle_, [&](const Idle& idle) {
    return idle.connection->replies().last_took <= kSoon &&
           lead_to_one_server(*idle.connection, first);
  });
  are_kept_ones_served |=
      starve >= kSeveral && rest != 0 && std::cmp_less(rest, starve);
  drop_idle_beside(first);
  const auto& notes = settings_.options.notes;
  // A few that starve among many may be slow replies.
  if (!are_kept_ones_served || 2 * starve < busy || notes == nullptr) return;
  if (!notes->is_crowded(now)) {
    log_info(fmt::format(
        "{}:{} leaves new connections waiting while it answers kept ones, as "
        "servers with few threads do: each request has a connection of its own "
        "now, and there are few at a time",
        first.target().host, first.target().port));
  }
  notes->note_crowded(now);
}

}  // namespace leat
