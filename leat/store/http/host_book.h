// An I/O thread's knowledge of the hosts that requests have named.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/clock.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/mailbox.h"
#include "leat/store/http/resolver.h"

namespace leat {

/// Keeps answers of the resolver while they are fresh, has them renewed a
/// little before they are stale, and remembers who waits for one.
///
/// Threads: one.
class HostBook {
 public:
  /// The resolver's answers come to `mailbox` as HostNews.
  HostBook(Resolver& resolver, std::shared_ptr<Mailbox> mailbox)
      : resolver_(resolver), mailbox_(std::move(mailbox)) {}

  /// The addresses of a host. Null while they are not known: hear() names
  /// `waiting` when that has changed.
  HostAnswerRef addresses_of(std::string_view host, TransferId waiting,
                             TimePoint now);
  /// Takes an answer; returns those who wait for it.
  std::vector<TransferId> hear(const HostNews& news, TimePoint now);

  /// The entry for libcurl about the host of `url` (CURLOPT_RESOLVE), once for
  /// each answer and port; empty if libcurl has it already.
  std::string curl_resolve_entry(const HttpUrl& url);

 private:
  struct Host {
    std::string name;
    HostAnswerRef answer;
    TimePoint ask_again;  ///< A little before the answer is stale.
    bool is_asked = false;
    /// The ports for which libcurl has been told the answer.
    std::vector<std::uint16_t> told_ports;
    std::vector<TransferId> parked;
  };

  Host& host_of(std::string_view name);
  void ask_for(Host& host);

  Resolver& resolver_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

/// The most addresses of a host that libcurl is told.
inline constexpr std::size_t kMostTold = 16;

}  // namespace leat
