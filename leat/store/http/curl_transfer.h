// One request on its way through libcurl.
#pragma once
#include <curl/curl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/store/http/transfer.h"

namespace leat {

class CurlTransfer;

/// Called by libcurl to open and close sockets. Must outlive every connection.
class SocketOwner {
 public:
  virtual ~SocketOwner() = default;
  virtual curl_socket_t open_socket(CurlTransfer& carrier,
                                    curl_sockaddr& address) = 0;
  virtual int close_socket(curl_socket_t socket) = 0;
};

/// A libcurl easy handle and the requests that it carries, one after another.
///
/// The handle is set up once and reused: each begin() sets every option that
/// depends on the request.
///
/// Threads: one.
class CurlTransfer {
 public:
  /// Carries the request in `transfer`, which must outlive it.
  CurlTransfer(Transfer& transfer, const TransferSettings& settings,
               SocketOwner& sockets);
  ~CurlTransfer();
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  /// An address that a connection was opened to; empty: none.
  struct Tried {
    std::string address;
    std::uint16_t port = 0;
  };

  /// Prepares the handle for the request that was put into the transfer.
  /// `resolved`, if not empty, is passed to libcurl: "host:port:address,...".
  /// REQUIRES: check_headers(request), and the transfer's watch is open.
  void begin(std::string resolved, TimePoint now);
  /// The outcome, once libcurl is done. Takes the reply.
  Result<HttpReply> outcome(CURLcode code);
  /// Gives up on a reply that is too slow. Call it every look_every().
  std::optional<Error> check(TimePoint now);
  Nanoseconds look_every() const { return look_every_; }
  /// Releases the request; keeps the handle.
  void clear();

  CURL* easy() const { return easy_; }
  /// Between begin() and clear().
  bool is_busy() const { return is_busy_; }
  /// The last address that this request has tried, of the host's first family.
  const Tried& tried() const { return tried_; }
  void tries(Tried address) { tried_ = std::move(address); }
  Tried connected_to() const;
  Transfer& transfer() const { return transfer_; }

 private:
  static std::size_t on_header(char* line, std::size_t one, std::size_t size,
                               void* self);
  static std::size_t on_body(char* bytes, std::size_t one, std::size_t size,
                             void* self);
  static std::size_t on_upload(char* into, std::size_t one, std::size_t size,
                               void* self);
  static int on_rewind(void* self, curl_off_t offset, int origin);
  static curl_socket_t on_open(void* self, curlsocktype purpose,
                               curl_sockaddr* address);
  static int on_close(void* sockets, curl_socket_t socket);

  void set_constant_options(const TransferSettings& settings);
  void set_method();
  void link_headers();
  bool hear_header(std::string_view line);
  void received(std::size_t bytes);
  Error failure(CURLcode code) const;
  Nanoseconds since_begin(CURLINFO what) const;
  const HttpRequest& request() const { return transfer_.submission.request; }

  Transfer& transfer_;
  SocketOwner& sockets_;
  const SteadyClock clock_;
  const Nanoseconds look_every_;
  CURL* const easy_;
  std::array<char, CURL_ERROR_SIZE> said_{};

  // The state of the request being carried.
  bool is_busy_ = false;
  TimePoint begun_at_;
  Tried tried_;
  std::string resolved_;
  curl_slist resolve_list_{};
  std::vector<curl_slist> header_list_;  // Points into the request.
  std::size_t sent_bytes_ = 0;
  bool is_refused_ = false;  ///< The sink stopped it.
  bool is_out_of_files_ = false;
};

}  // namespace leat
