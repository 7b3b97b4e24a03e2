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

/// Keeps the resolver's answers, renews them shortly before they expire, and
/// remembers which requests wait for one. Nobody waits for the renewal of an
/// answer that has expired only lately.
///
/// Threads: one.
class HostBook {
 public:
  /// The resolver's answers come to `mailbox` as HostNews.
  HostBook(Resolver& resolver, std::shared_ptr<Mailbox> mailbox)
      : resolver_(resolver), mailbox_(std::move(mailbox)) {}

  /// The addresses of a host. Null while unknown: hear() returns `waiting` when
  /// that has changed.
  HostAnswerRef addresses_of(std::string_view host, TransferId waiting,
                             TimePoint now);
  /// None of the addresses of a host takes connections: asks for them again, at
  /// most once a second.
  void doubt(std::string_view host, TimePoint now);
  /// The last addresses that were known, however old; may be null.
  HostAnswerRef last_answer(std::string_view host) const;
  /// Takes an answer; returns the transfers that wait for it.
  std::vector<TransferId> hear(const HostNews& news, TimePoint now);

  /// The entry for libcurl about the host of `url` (CURLOPT_RESOLVE), once for
  /// each answer and port; empty if libcurl already has it.
  std::string curl_resolve_entry(const HttpUrl& url);

 private:
  struct Host {
    std::string name;
    HostAnswerRef answer;
    TimePoint heard;      ///< When the last answer or failure came.
    TimePoint ask_again;  ///< Shortly before the answer expires.
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

/// The most addresses of a host that are passed to libcurl.
inline constexpr std::size_t kMostTold = 16;

}  // namespace leat
