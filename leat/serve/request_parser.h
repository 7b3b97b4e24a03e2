// HTTP/1.1 requests from bytes. Internal to serve/: includes Beast.
#pragma once
#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/serve/http_service.h"

namespace leat {

/// Hears what a RequestParser finds, in this order.
class RequestEvents {
 public:
  virtual ~RequestEvents() = default;
  virtual void on_head() = 0;
  virtual void on_body(std::span<const std::byte> piece) = 0;
};

/// Beast's parser with a head that costs two allocations, not two per field.
class RequestParser final : public boost::beast::http::basic_parser<true> {
 public:
  static constexpr std::uint32_t kMostHeadBytes = 64 << 10;
  /// S3's largest object; anything larger cannot be meant.
  static constexpr std::uint64_t kMostBodyBytes = 5ULL << 40;

  explicit RequestParser(RequestEvents& events);

  /// Complete once on_head() has been called; lives as long as the parser.
  const RequestHead& head() const { return head_; }

 private:
  using Text = boost::beast::string_view;
  using Failure = boost::beast::error_code;
  using Field = boost::beast::http::field;
  struct Piece {
    std::size_t name_at, name_size, value_size;  // The value follows the name.
  };

  void on_request_impl(boost::beast::http::verb verb, Text method, Text target,
                       int version, Failure& failure) override;
  void on_response_impl(int code, Text reason, int version,
                        Failure& failure) override;
  void on_field_impl(Field field, Text name, Text value,
                     Failure& failure) override;
  void on_header_impl(Failure& failure) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& size_bytes,
                         Failure& failure) override;
  std::size_t on_body_impl(Text body, Failure& failure) override;
  void on_chunk_header_impl(std::uint64_t size_bytes, Text extensions,
                            Failure& failure) override;
  std::size_t on_chunk_body_impl(std::uint64_t remaining_bytes, Text body,
                                 Failure& failure) override;
  void on_finish_impl(Failure& failure) override;

  RequestEvents& events_;
  std::string text_;  // Method, target, names and values, one after another.
  std::size_t method_size_ = 0;
  std::size_t target_size_ = 0;
  std::size_t head_bytes_ = 0;
  std::vector<Piece> fields_;
  RequestHead head_;
};

}  // namespace leat
