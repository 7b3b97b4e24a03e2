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

/// The port that `leat top` asks by default. 5328 spells LEAT on a telephone.
inline constexpr std::uint16_t kViewPort = 5328;

struct ViewServerOptions {
  /// An address of this machine. Everyone who reaches it may read the names,
  /// users, datasets and speeds of all jobs, without being asked who they are.
  std::string host = "127.0.0.1";
  std::uint16_t port = kViewPort;  ///< 0 lets the system choose.
  /// By which the server may be asked for, besides "localhost" and addresses;
  /// see may_ask_for().
  std::vector<std::string> names{};
};

/// The node as it is now. Called on the server's thread at every request; must
/// be soon back.
using ViewSource = std::function<NodeView()>;

/// Agent::trace(), likewise; none: there are no traces to show.
using TraceSource = std::function<std::optional<JobTrace>(const std::string&)>;

/// Answers GET and HEAD of
///
///   /                  the page                             /assets/NAME
///   /api/node          view_json(); `?points_after=UNIX_TIME` and
///                      `&decisions_after=NUMBER` leave out what is older
///   /api/trace?job=ID  trace_json(): asking has the job tell it for some
///                      seconds
///   /metrics           exposition()
///
/// and anything else with 400 (a query that it cannot read), 403 (asked for by
/// a foreign name), 404 or 405. Nothing may be cached, framed, or read by pages
/// of other origins, and the page may load nothing from elsewhere.
///
/// Threads:  any; it has one of its own.
/// Lifetime: destruction closes all connections and joins. The objects that
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

/// True if a request with this Host header may be answered: it names an
/// address, "localhost" or one of `names`, with or without a port. A page
/// elsewhere that has its own name resolve to 127.0.0.1 sends its own name.
bool may_ask_for(std::string_view host_header,
                 const std::vector<std::string>& names);

}  // namespace leat
