// One request on its way through libcurl.
#pragma once
#include <curl/curl.h>

#include <array>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/store/http/mailbox.h"

namespace leat {

/// What every transfer of a client has in common.
struct TransferSettings {
  HttpClientOptions options;
  std::string ca_bundle;  ///< Found; empty for libcurl's own.
  /// The environment names a proxy: libcurl resolves and connects by itself.
  bool uses_proxy = false;
  Metrics* metrics = nullptr;
};

/// Told by libcurl to open and close sockets. Outlives every connection.
class SocketOwner {
 public:
  virtual ~SocketOwner() = default;
  virtual curl_socket_t open_socket(const HostAnswer* addresses,
                                    curl_sockaddr& address) = 0;
  virtual int close_socket(curl_socket_t socket) = 0;
};

/// A libcurl easy handle and the request that it carries, if any.
///
/// Handles are set up once and used again: every option that depends on the
/// request is set by each begin().
///
/// Threads: one, but for `on_stop`.
class CurlTransfer {
 public:
  struct OnStop {
    std::weak_ptr<Mailbox> mailbox;
    TransferId id;
    void operator()() const {
      if (const auto open = mailbox.lock()) open->post(id);
    }
  };

  CurlTransfer(const TransferSettings& settings, SocketOwner& sockets);
  ~CurlTransfer();
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  /// Sets the handle up for `submission.request`, which has been put there.
  /// `resolved`, if not empty, is told to libcurl: "host:port:address,...".
  Result<void> begin(HostAnswerRef addresses, std::string resolved);
  /// What became of it, once libcurl is done. Takes the reply.
  Result<HttpReply> outcome(CURLcode code);
  /// Lets go of the request; the handle is kept.
  void clear();

  CURL* easy() const { return easy_; }
  /// An error about this request: "GET http://host/path: `what`".
  Error error(ErrorCode code, std::string_view what) const;

  Submission submission;
  TransferId id;
  bool is_running = false;  ///< In the multi handle.
  std::optional<std::stop_callback<OnStop>> on_stop;

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
  Result<void> link_headers();
  void hear_header(std::string_view line);
  bool hear_body(std::string_view bytes);
  bool goes_into_place() const;
  Error failure(CURLcode code) const;
  Error too_short() const;
  Nanoseconds since_begin(CURLINFO what) const;

  SocketOwner& sockets_;
  CURL* const easy_;
  std::array<char, CURL_ERROR_SIZE> said_{};

  // Of the request that is carried.
  HostAnswerRef addresses_;
  std::string resolved_;
  curl_slist resolve_list_{};
  std::vector<curl_slist> header_list_;  // Points into the request.
  std::size_t sent_bytes_ = 0;
  std::size_t received_bytes_ = 0;
  HttpReply reply_;
  std::size_t header_count_ = 0;
  std::optional<Error> refused_;  ///< Why hear_body() ended it.
  bool is_out_of_files_ = false;
};

}  // namespace leat
