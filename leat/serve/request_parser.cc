#include "leat/serve/request_parser.h"

#include <boost/beast/http/impl/basic_parser.ipp>

namespace leat {
namespace {

constexpr std::size_t kBytesOfField = 4;  // Colon, space and the line's end.

}  // namespace

RequestParser::RequestParser(RequestEvents& events) : events_(events) {
  eager(true);
  header_limit(kMostHeadBytes);
  body_limit(kMostBodyBytes);
  text_.reserve(1024);
  fields_.reserve(16);
}

void RequestParser::on_request_impl(boost::beast::http::verb, Text method,
                                    Text target, int, Failure&) {
  text_.append(method.data(), method.size());
  text_.append(target.data(), target.size());
  head_bytes_ = text_.size();
  method_size_ = method.size();
  target_size_ = target.size();
}

void RequestParser::on_response_impl(int, Text, int, Failure&) {}

void RequestParser::on_field_impl(Field field, Text name, Text value,
                                  Failure& failure) {
  // A trailer behind a chunked body is not wanted, and would move `text_`.
  if (is_header_done()) return;
  // Beast takes a body in another coding for no body, and its bytes for the
  // next request.
  if (field == Field::transfer_encoding &&
      !equal_in_any_case({value.data(), value.size()}, "chunked")) {
    failure = boost::beast::http::error::bad_transfer_encoding;
    return;
  }
  // Beast's own limit concerns bytes that it has not yet taken.
  head_bytes_ += name.size() + value.size() + kBytesOfField;
  if (head_bytes_ > kMostHeadBytes) {
    failure = boost::beast::http::error::header_limit;
    return;
  }
  fields_.push_back({text_.size(), name.size(), value.size()});
  text_.append(name.data(), name.size());
  text_.append(value.data(), value.size());
}

void RequestParser::on_header_impl(Failure&) {
  const std::string_view text = text_;
  head_.method = text.substr(0, method_size_);
  head_.target = text.substr(method_size_, target_size_);
  head_.headers.reserve(fields_.size());
  for (const Piece& piece : fields_) {
    head_.headers.emplace_back(
        text.substr(piece.name_at, piece.name_size),
        text.substr(piece.name_at + piece.name_size, piece.value_size));
  }
  events_.on_head();
}

void RequestParser::on_body_init_impl(const boost::optional<std::uint64_t>&,
                                      Failure&) {}

std::size_t RequestParser::on_body_impl(Text body, Failure&) {
  events_.on_body(as_bytes({body.data(), body.size()}));
  return body.size();
}

void RequestParser::on_chunk_header_impl(std::uint64_t, Text, Failure&) {}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t, Text body,
                                              Failure&) {
  events_.on_body(as_bytes({body.data(), body.size()}));
  return body.size();
}

void RequestParser::on_finish_impl(Failure&) {}

}  // namespace leat
