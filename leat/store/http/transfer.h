// One request on its way, over either transport.
#pragma once
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "leat/metrics/metrics.h"
#include "leat/store/http/first_byte_times.h"
#include "leat/store/http/mailbox.h"
#include "leat/store/http/reply_sink.h"
#include "leat/store/http/reply_watch.h"

namespace leat {

/// The settings that all transfers of a client share.
struct TransferSettings {
  HttpClientOptions options;
  std::string ca_bundle;  ///< Found; empty for the TLS library's own.
  /// The environment names a proxy: libcurl carries everything, and resolves
  /// names and connects itself.
  bool uses_proxy = false;
  Metrics* metrics = nullptr;
};

/// A request, its reply so far, and its stop callback.
///
/// Threads: one, except for `on_stop`.
struct Transfer {
  struct OnStop {
    std::weak_ptr<Mailbox> mailbox;
    TransferId id;
    void operator()() const {
      if (const auto open = mailbox.lock()) open->post(id);
    }
  };

  Error error(ErrorCode code, std::string_view what) const {
    return request_error(submission.request, code, what);
  }

  Submission submission;
  TransferId id;
  ReplySink sink;
  ReplyWatch watch;
  FirstByteTimes* times = nullptr;  ///< Those of its server.
  /// The addresses of its host; null if the host is an address, or not known.
  HostAnswerRef addresses;
  std::optional<std::stop_callback<OnStop>> on_stop;
};

}  // namespace leat
