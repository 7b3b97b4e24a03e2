// The interface of a server to the code that answers requests. Nothing here
// knows sockets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/clock.h"
#include "leat/serve/open_file.h"

namespace leat {

/// Ignores the case of ASCII letters only, as names of headers and hosts
/// require.
bool equal_in_any_case(std::string_view a, std::string_view b);

/// A request up to its body. The views live as long as its Exchange.
struct RequestHead {
  std::string_view method;
  std::string_view target;  ///< Path and query as they were sent.
  std::vector<std::pair<std::string_view, std::string_view>> headers;

  /// The value of the first header of this name, in any case; empty if none.
  std::string_view header(std::string_view name) const;
};

/// Bytes of a file, sent without reading them into memory where possible.
struct FileRange {
  std::shared_ptr<const OpenFile> file;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
};

/// How a reply ends. All but the first are for tests of clients.
enum class Ending : std::uint8_t {
  kWhole,
  kReset,     ///< No reply: the connection is reset when the delay is over.
  kTruncate,  ///< Half the body, then the connection ends.
  kStall,     ///< Half the body, then nothing until the client leaves.
  kTrickle,   ///< The whole body, a byte a second.
};

struct Reply {
  int status = 200;
  /// "Name: value\r\n" each, without Content-Length and Connection.
  std::string headers;
  std::string body;
  /// If set, the file is sent as the body instead of `body`. A HEAD sends only
  /// its size.
  std::optional<FileRange> file;
  /// From the request's last byte to the reply's first.
  Nanoseconds delay{0};
  Ending ending = Ending::kWhole;
  /// The byte of the body that is sent with its lowest bit wrong: for tests of
  /// clients.
  std::optional<std::uint64_t> flipped_byte{};
  /// False for replies that the server's rates do not hold back.
  bool is_shaped = true;
};

/// The outcome of a reply.
struct SentReply {
  std::uint64_t body_bytes = 0;  ///< As many as left.
  /// How much later the first byte left than Reply::delay and the rates asked.
  Nanoseconds lateness{0};
  bool is_whole = false;
};

/// Answers a request: call it exactly once, on any thread. After the connection
/// has gone it does nothing.
using SendReply = std::function<void(Reply)>;

/// One request as the service sees it.
///
/// Threads:  one call at a time, on the connection's thread; none may block.
/// Lifetime: until the reply has left or the connection has gone.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// False if the reply will not depend on the body: a client that asks before
  /// it sends one is told not to.
  virtual bool wants_body() const { return true; }

  /// A piece of the body; called in order.
  virtual void on_body(std::span<const std::byte>) {}

  /// The request is in, whole.
  virtual void on_request(SendReply send) = 0;

  virtual void on_sent(const SentReply&) {}
};

/// Threads:  any thread of the server, at any time.
/// Lifetime: outlives the server.
class HttpService {
 public:
  virtual ~HttpService() = default;

  virtual std::unique_ptr<Exchange> begin(const RequestHead& head) = 0;
};

}  // namespace leat
