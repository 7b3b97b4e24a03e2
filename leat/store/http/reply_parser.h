// Parses HTTP/1.1 replies. Internal to store/http: includes Beast.
#pragma once
#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>

#include "leat/store/http/reply_sink.h"

namespace leat {

/// Beast's parser, which passes its findings to a ReplySink.
///
/// It stops once after the head (see basic_parser::eager), so that the reader
/// can take the body past it, straight to its destination.
class HttpReplyParser final : public boost::beast::http::basic_parser<false> {
 public:
  explicit HttpReplyParser(ReplySink& sink);

  /// The sink accepts no more: its outcome() says why.
  bool is_refused() const { return is_refused_; }
  /// Given to the sink so far.
  std::uint64_t body_bytes() const { return body_bytes_; }

 private:
  using Text = boost::beast::string_view;
  using Failure = boost::beast::error_code;
  using Field = boost::beast::http::field;

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

  std::size_t hear_body(Text body, Failure& failure);
  void go_on_if(bool is_accepted, Failure& failure);

  ReplySink& sink_;
  std::uint64_t body_bytes_ = 0;
  bool is_refused_ = false;
};

}  // namespace leat
