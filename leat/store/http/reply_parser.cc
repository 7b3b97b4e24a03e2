#include "leat/store/http/reply_parser.h"

#include <boost/beast/http/impl/basic_parser.ipp>
#include <limits>
#include <string_view>

namespace leat {

HttpReplyParser::HttpReplyParser(ReplySink& sink) : sink_(sink) {
  header_limit(kMostHeadBytes);
  // The sink has limits of its own.
  body_limit(std::numeric_limits<std::uint64_t>::max());
}

void HttpReplyParser::on_request_impl(boost::beast::http::verb, Text, Text, int,
                                      Failure&) {}

void HttpReplyParser::on_response_impl(int code, Text, int, Failure&) {
  sink_.hear_status(code);
}

void HttpReplyParser::on_field_impl(Field, Text name, Text value,
                                    Failure& failure) {
  // A trailer behind a chunked body is not wanted.
  if (is_header_done()) return;
  // Beast's own limit concerns bytes that it has not yet taken.
  head_bytes_ += name.size() + value.size();
  if (head_bytes_ > kMostHeadBytes) {
    failure = boost::beast::http::error::header_limit;
    return;
  }
  sink_.hear_header({name.data(), name.size()},
                    trimmed({value.data(), value.size()}));
}

void HttpReplyParser::on_header_impl(Failure&) {}

void HttpReplyParser::on_body_init_impl(const boost::optional<std::uint64_t>&,
                                        Failure&) {}

std::size_t HttpReplyParser::hear_body(Text body, Failure& failure) {
  if (!sink_.hear_body({body.data(), body.size()})) {
    is_refused_ = true;
    failure = boost::beast::http::error::body_limit;
  }
  return body.size();
}

std::size_t HttpReplyParser::on_body_impl(Text body, Failure& failure) {
  return hear_body(body, failure);
}

void HttpReplyParser::on_chunk_header_impl(std::uint64_t, Text, Failure&) {}

std::size_t HttpReplyParser::on_chunk_body_impl(std::uint64_t, Text body,
                                                Failure& failure) {
  return hear_body(body, failure);
}

void HttpReplyParser::on_finish_impl(Failure&) {}

}  // namespace leat
