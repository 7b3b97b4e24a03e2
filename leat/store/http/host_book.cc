#include "leat/store/http/host_book.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leat {
namespace {

/// Answers are renewed this long before they are stale, so that nobody waits.
constexpr std::chrono::seconds kRenewEarly{10};
/// And not more often than this if that fails.
constexpr std::chrono::seconds kRenewPause{1};
/// An answer serves this long after it has expired, while it is renewed.
constexpr std::chrono::seconds kServeStale{60};

}  // namespace

HostAnswerRef HostBook::addresses_of(std::string_view name, TransferId waiting,
                                     TimePoint now) {
  Host& host = host_of(name);
  if (host.answer == nullptr || now >= host.answer->fresh_until + kServeStale) {
    host.parked.push_back(waiting);
    ask_for(host);
    return nullptr;
  }
  if (now >= host.ask_again) ask_for(host);
  return host.answer;
}

void HostBook::doubt(std::string_view name, TimePoint now) {
  Host& host = host_of(name);
  if (host.answer != nullptr && now >= host.heard + kRenewPause) ask_for(host);
}

HostAnswerRef HostBook::last_answer(std::string_view name) const {
  const auto host = std::ranges::find_if(
      hosts_, [name](const auto& one) { return one->name == name; });
  return host == hosts_.end() ? nullptr : (*host)->answer;
}

std::vector<TransferId> HostBook::hear(const HostNews& news, TimePoint now) {
  Host& host = host_of(news.host);
  host.is_asked = false;
  host.heard = now;
  host.ask_again = now + kRenewPause;
  if (news.answer) {
    host.answer = *news.answer;
    host.ask_again =
        std::max(host.ask_again, host.answer->fresh_until - kRenewEarly);
    host.told_ports.clear();
  }
  return std::exchange(host.parked, {});
}

std::string HostBook::curl_resolve_entry(const HttpUrl& url) {
  Host& host = host_of(url.host);
  if (host.answer == nullptr ||
      std::ranges::find(host.told_ports, url.port) != host.told_ports.end()) {
    return {};
  }
  host.told_ports.push_back(url.port);
  // "host:port:address,address", which holds until the next such entry.
  std::string entry = fmt::format("{}:{}:", url.host, url.port);
  const auto& addresses = host.answer->addresses;
  const std::size_t count = std::min(addresses.size(), kMostTold);
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) entry += ',';
    const bool needs_brackets = addresses[i].address.ss_family == AF_INET6;
    entry += needs_brackets ? '[' + addresses[i].text + ']' : addresses[i].text;
  }
  return entry;
}

HostBook::Host& HostBook::host_of(std::string_view name) {
  for (const auto& host : hosts_) {
    if (host->name == name) return *host;
  }
  hosts_.push_back(std::make_unique<Host>());
  hosts_.back()->name = name;
  return *hosts_.back();
}

void HostBook::ask_for(Host& host) {
  if (std::exchange(host.is_asked, true)) return;
  auto tell = [mailbox = mailbox_,
               name = host.name](Result<HostAnswerRef> answer) {
    mailbox->post(HostNews{.host = name, .answer = std::move(answer)});
  };
  if (host.answer == nullptr) {
    resolver_.resolve(host.name, std::move(tell));
  } else {
    resolver_.refresh(host.name, std::move(tell));
  }
}

}  // namespace leat
