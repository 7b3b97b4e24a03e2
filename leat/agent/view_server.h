// The agent's page, its JSON and its metrics, over HTTP.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/agent/node_view.h"
#include "leat/agent/wire/job_trace.h"
#include "leat/base/result.h"

namespace leat {

/// The default port of `leat top`. 5328 spells LEAT on a telephone.
inline constexpr std::uint16_t kViewPort = 5328;

struct ViewServerOptions {
  /// An address of this machine. Anyone who can reach it can read the names,
  /// users, datasets and speeds of all jobs, without authentication.
  std::string host = "127.0.0.1";
  std::uint16_t port = kViewPort;  ///< 0 lets the system choose.
  /// Host names that requests may use besides "localhost" and addresses; see
  /// serve/asked_host.h.
  std::vector<std::string> names{};
};

/// The present state of the node. Called on the server's thread for every
/// request; must return soon.
using ViewSource = std::function<NodeView()>;

/// See Agent::trace(), likewise; none: there are no traces to show.
using TraceSource = std::function<std::optional<JobTrace>(const std::string&)>;

/// Answers GET and HEAD of
///
///   /                  the page                             /assets/NAME
///   /api/node          view_json(); `?points_after=UNIX_TIME` and
///                      `&decisions_after=NUMBER` leave out what is older
///   /api/trace?job=ID trace_json(): has the job report it for some
///                      seconds
///   /metrics           exposition()
///
/// and everything else with 400 (an unreadable query), 403 (a foreign host
/// name), 404 or 405. Nothing may be cached, framed, or read by pages of other
/// origins, and the page may load nothing from elsewhere.
///
/// Threads: any; the server has a thread of its own. Lifetime: destruction
/// closes all connections and joins. The objects that
///           `view` and `trace` refer to must live as long.
class ViewServer {
 public:
  virtual ~ViewServer() = default;
  virtual std::uint16_t port() const = 0;
  /// "http://127.0.0.1:5328"
  virtual std::string url() const = 0;
};

/// Errors:
///   kInvalidArgument   `host` is not an address
///   kUnavailable       the address is taken or not of this machine
Result<std::unique_ptr<ViewServer>> open_view_server(
    const ViewServerOptions& options, ViewSource view, TraceSource trace = {});

}  // namespace leat
