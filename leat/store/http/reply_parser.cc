#include "leat/store/http/reply_parser.h"

#include <boost/beast/http/impl/basic_parser.ipp>
#include <limits>
#include <string_view>

namespace leat {
namespace {

/// Beast's own limit concerns bytes that it has not yet taken: a line.
constexpr std::uint32_t kMostLineBytes = 64 << 10;

}  // namespace

HttpReplyParser::HttpReplyParser(ReplySink& sink) : sink_(sink) {
  header_limit(kMostLineBytes);
  // The sink has limits of its own.
  body_limit(std::numeric_limits<std::uint64_t>::max());
}

void HttpReplyParser::on_request_impl(boost::beast::http::verb, Text, Text, int,
                                      Failure&) {}

void HttpReplyParser::go_on_if(bool is_accepted, Failure& failure) {
  if (is_accepted) return;
  is_refused_ = true;
  failure = boost::beast::http::error::body_limit;
}

void HttpReplyParser::on_response_impl(int code, Text, int, Failure& failure) {
  go_on_if(sink_.hear_status(code), failure);
}

void HttpReplyParser::on_field_impl(Field field, Text name, Text value,
                                    Failure& failure) {
  // Others would have to be undone, and nobody asked for them.
  if (field == Field::transfer_encoding &&
      !boost::beast::iequals(value, "chunked")) {
    failure = boost::beast::http::error::bad_transfer_encoding;
    return;
  }
  go_on_if(sink_.hear_header({name.data(), name.size()},
                             trimmed({value.data(), value.size()})),
           failure);
}

void HttpReplyParser::on_header_impl(Failure&) { sink_.hear_head_end(); }

void HttpReplyParser::on_body_init_impl(const boost::optional<std::uint64_t>&,
                                        Failure&) {}

std::size_t HttpReplyParser::hear_body(Text body, Failure& failure) {
  body_bytes_ += body.size();
  go_on_if(sink_.hear_body({body.data(), body.size()}), failure);
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
