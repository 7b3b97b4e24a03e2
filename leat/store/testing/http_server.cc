#include "leat/store/testing/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/runtime/thread_name.h"

namespace leat::testing {
namespace {

constexpr std::size_t kMostRequestBytes = 64 << 20;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return result;
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

/// Reads until `buffer` has `wanted` bytes; false at the end of the stream.
bool receive_more(int socket, std::string& buffer) {
  std::array<char, 16384> piece{};
  const ssize_t got = recv(socket, piece.data(), piece.size(), 0);
  if (got <= 0 || buffer.size() > kMostRequestBytes) return false;
  buffer.append(piece.data(), static_cast<std::size_t>(got));
  return true;
}

/// One request from the front of `buffer`, which keeps what follows.
std::optional<ServerRequest> receive_request(int socket, std::string& buffer) {
  std::size_t head_end = 0;
  while ((head_end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!receive_more(socket, buffer)) return std::nullopt;
  }
  ServerRequest request;
  const std::string_view head = std::string_view(buffer).substr(0, head_end);
  std::size_t line_end = std::min(head.find("\r\n"), head.size());
  const std::string_view first = head.substr(0, line_end);
  const std::size_t space = first.find(' ');
  request.method = first.substr(0, space);
  request.target = first.substr(space + 1, first.rfind(' ') - space - 1);
  while (line_end < head.size()) {
    const std::size_t begin = line_end + 2;
    line_end = std::min(head.find("\r\n", begin), head.size());
    const std::string_view line = head.substr(begin, line_end - begin);
    const std::size_t colon = line.find(':');
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    request.headers[lower(line.substr(0, colon))] = value;
  }
  std::size_t body_bytes = 0;
  const std::string length = request.header("content-length");
  std::from_chars(length.data(), length.data() + length.size(), body_bytes);
  buffer.erase(0, head_end + 4);
  while (buffer.size() < body_bytes) {
    if (!receive_more(socket, buffer)) return std::nullopt;
  }
  request.body = buffer.substr(0, body_bytes);
  buffer.erase(0, body_bytes);
  return request;
}

std::string local_address(int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

void reset(int socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

}  // namespace

std::string ServerRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

ScriptedServer::ScriptedServer(Answer answer, const char* at)
    : answer_(std::move(answer)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  LEAT_CHECK(listener_ >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  LEAT_CHECK(inet_pton(AF_INET, at, &address.sin_addr) == 1);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  LEAT_CHECK(bind(listener_, generic, size) == 0);
  LEAT_CHECK(listen(listener_, 512) == 0);
  LEAT_CHECK(getsockname(listener_, generic, &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this] { accept_all(); });
}

ScriptedServer::~ScriptedServer() {
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  std::list<std::jthread> threads;
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    stopped_.notify_all();
    for (const int open : sockets_) shutdown(open, SHUT_RDWR);
    threads.swap(threads_);
  }
}

std::string ScriptedServer::url(std::string_view target) const {
  return fmt::format("http://127.0.0.1:{}{}", port_, target);
}

std::size_t ScriptedServer::open_connections() const {
  const MutexLock lock(mutex_);
  return sockets_.size();
}

void ScriptedServer::accept_all() {
  name_this_thread("test-accept");
  for (;;) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ++connections_;
    const MutexLock lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

void ScriptedServer::serve(int socket) {
  name_this_thread("test-serve");
  std::string buffer;
  const std::string address = local_address(socket);
  while (auto request = receive_request(socket, buffer)) {
    request->nth = requests_++;
    request->address = address;
    if (!reply_to(socket, *request)) break;
  }
  const MutexLock lock(mutex_);
  sockets_.remove(socket);
  close(socket);
}

bool ScriptedServer::reply_to(int socket, const ServerRequest& request) {
  const ServerReply reply = answer_(request);
  if (reply.delay > Nanoseconds(0)) wait_for_the_end(reply.delay);
  if (reply.ending == ServerEnding::kReset && reply.sent_bytes == 0) {
    reset(socket);
    return false;
  }
  if (!reply.raw.empty() || !reply.steps.empty()) {
    if (!send_steps(socket, reply)) return false;
    return end_as(reply.ending, socket);
  }
  std::string head = fmt::format("HTTP/1.1 {} Status\r\n", reply.status);
  bool has_length = !reply.tells_length;
  for (const auto& [name, value] : reply.headers) {
    head += fmt::format("{}: {}\r\n", name, value);
    has_length = has_length || lower(name) == "content-length";
  }
  if (!has_length) {
    head += fmt::format("Content-Length: {}\r\n", reply.body.size());
  }
  head += "\r\n";
  std::string_view body = reply.body;
  const bool is_whole = reply.ending == ServerEnding::kWhole ||
                        reply.ending == ServerEnding::kClosed;
  if (!is_whole) body = body.substr(0, reply.sent_bytes);
  if (request.method == "HEAD") body = {};
  if (!send_all(socket, head.append(body))) return false;
  return end_as(reply.ending, socket);
}

bool ScriptedServer::end_as(ServerEnding ending, int socket) {
  if (ending == ServerEnding::kReset) reset(socket);
  if (ending == ServerEnding::kStall) wait_for_the_end(Nanoseconds::max());
  return ending == ServerEnding::kWhole;
}

bool ScriptedServer::send_steps(int socket, const ServerReply& reply) {
  const std::string_view raw = reply.raw;
  for (std::size_t at = 0; at < raw.size(); at += reply.raw_piece_bytes) {
    if (!send_all(socket, raw.substr(at, reply.raw_piece_bytes))) return false;
    if (reply.raw_piece_bytes < raw.size()) std::this_thread::yield();
  }
  for (const ServerStep& step : reply.steps) {
    for (std::size_t i = 0; i < step.times; ++i) {
      if (step.pause > Nanoseconds(0) && wait_for_the_end(step.pause)) {
        return false;
      }
      if (!send_all(socket, step.bytes)) return false;
    }
  }
  return true;
}

bool ScriptedServer::wait_for_the_end(Nanoseconds at_most) {
  const auto is_stopped = [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return is_stopped_;
  };
  MutexLock lock(mutex_);
  if (at_most == Nanoseconds::max()) {
    stopped_.wait(lock, is_stopped);
  } else {
    stopped_.wait_for(lock, at_most, is_stopped);
  }
  return is_stopped_;
}

namespace {

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 2, value, 16).ptr ==
            &text[i + 1] + 2) {
      decoded.push_back(static_cast<char>(value));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

ServerReply answer_range(const std::string& range, const std::string& bytes,
                         ServerReply reply) {
  std::size_t first = 0;
  std::size_t last = 0;
  const char* end = range.data() + range.size();
  const auto dash = std::from_chars(range.data() + 6, end, first).ptr;
  const bool is_bounded =
      dash < end && std::from_chars(dash + 1, end, last).ec == std::errc();
  if (first >= bytes.size()) {
    reply.status = 416;
    return reply;
  }
  last = is_bounded ? std::min(last, bytes.size() - 1) : bytes.size() - 1;
  reply.status = 206;
  reply.headers.emplace_back(
      "Content-Range",
      fmt::format("bytes {}-{}/{}", first, last, bytes.size()));
  reply.body = bytes.substr(first, last - first + 1);
  return reply;
}

}  // namespace

ScriptedServer::Answer serve_objects(
    std::map<std::string, std::string> objects) {
  auto shared = std::make_shared<const std::map<std::string, std::string>>(
      std::move(objects));
  return [shared](const ServerRequest& request) -> ServerReply {
    const auto found = shared->find(percent_decoded(request.target).substr(1));
    if (found == shared->end()) return {.status = 404};
    const std::string& bytes = found->second;
    const std::string etag = '"' + xxh3_128(leat::as_bytes(bytes)).hex() + '"';
    const std::string wanted = request.header("if-match");
    if (!wanted.empty() && wanted != etag) return {.status = 412};
    ServerReply reply{.headers = {{"ETag", etag}, {"Accept-Ranges", "bytes"}}};
    if (request.method == "HEAD") {
      reply.headers.emplace_back("Content-Length",
                                 std::to_string(bytes.size()));
      return reply;
    }
    const std::string range = request.header("range");
    if (range.starts_with("bytes=")) {
      return answer_range(range, bytes, std::move(reply));
    }
    reply.body = bytes;
    return reply;
  };
}

}  // namespace leat::testing
