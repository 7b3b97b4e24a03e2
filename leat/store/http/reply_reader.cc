#include "leat/store/http/reply_reader.h"

#include <fmt/format.h>

#include <utility>

namespace leat {
namespace {

namespace beast = boost::beast::http;

/// The most bytes of a line, such as the head of a chunk, and of the trailer.
constexpr std::size_t kMostUnparsed = 64 * 1024;

/// The most bytes of a reply that are not its body: kMostFraming, and
/// kMostFramingAByte for each byte of the body, which may come in
/// chunks of one byte.
constexpr std::uint64_t kMostFraming = 1 << 20;
constexpr std::uint64_t kMostFramingAByte = 16;

}  // namespace

void ReplyReader::open(ReplySink& sink, bool is_to_head) {
  sink_ = &sink;
  is_to_head_ = is_to_head;
  parser_.reset();
  unparsed_.clear();
  taken_bytes_ = 0;
  place_left_bytes_ = 0;
  has_excess_ = false;
  why_.clear();
}

bool ReplyReader::has_begun() const { return taken_bytes_ != 0; }

auto ReplyReader::broken(std::string_view why) -> Step {
  why_ = why;
  return Step::kBroken;
}

auto ReplyReader::more() -> Step {
  const std::uint64_t body_bytes = parser_ ? parser_->body_bytes() : 0;
  if (unparsed_.size() > kMostUnparsed ||
      taken_bytes_ > kMostFraming + kMostFramingAByte * body_bytes) {
    return broken("the head of a chunk, or the trailer, has no end");
  }
  return Step::kMore;
}

bool ReplyReader::can_keep() const {
  return !has_excess_ && parser_ && parser_->keep_alive();
}

std::span<std::byte> ReplyReader::place() const {
  if (place_left_bytes_ == 0) return {};
  return sink_->place().first(place_left_bytes_);
}

auto ReplyReader::placed(std::size_t bytes) -> Step {
  sink_->placed(bytes);
  place_left_bytes_ -= bytes;
  return place_left_bytes_ == 0 ? Step::kDone : Step::kMore;
}

auto ReplyReader::take(std::string_view bytes) -> Step {
  taken_bytes_ += bytes.size();
  std::string joined;
  if (!unparsed_.empty()) {
    joined = std::exchange(unparsed_, {}).append(bytes);
    bytes = joined;
  }
  while (!bytes.empty()) {
    if (!parser_) {
      parser_.emplace(*sink_);
      parser_->skip(is_to_head_);
    }
    const bool had_head = has_head();
    boost::beast::error_code failure;
    const std::size_t used = parser_->put(
        boost::asio::const_buffer(bytes.data(), bytes.size()), failure);
    bytes.remove_prefix(used);
    if (failure == beast::error::need_more) {
      unparsed_ = bytes;
      return more();
    }
    if (parser_->is_refused()) return Step::kRefused;
    if (failure) return broken(failure.message());
    if (!had_head && has_head()) {
      const Step step = begin_body(bytes);
      if (step != Step::kMore || place_left_bytes_ != 0) return step;
    }
    if (parser_ && parser_->is_done()) {
      has_excess_ = !bytes.empty();
      return Step::kDone;
    }
  }
  return more();
}

auto ReplyReader::begin_body(std::string_view& bytes) -> Step {
  if (sink_->status() / 100 == 1) {
    parser_.reset();
    return Step::kMore;
  }
  parser_->eager(true);
  const auto length = parser_->content_length();
  if (!length || parser_->is_done()) return Step::kMore;
  if (!sink_->may_hold(*length)) return Step::kRefused;
  if (!sink_->goes_into_place()) return Step::kMore;
  // The rest of the body bypasses the parser.
  const std::string_view here = bytes.substr(0, *length);
  sink_->hear_body(here);
  bytes.remove_prefix(here.size());
  place_left_bytes_ = *length - here.size();
  if (place_left_bytes_ != 0) return Step::kMore;
  has_excess_ = !bytes.empty();
  return Step::kDone;
}

auto ReplyReader::end() -> Step {
  if (!has_head() || place_left_bytes_ != 0) return Step::kBroken;
  boost::beast::error_code failure;
  parser_->put_eof(failure);
  has_excess_ = true;  // There is no more connection.
  return failure ? Step::kBroken : Step::kDone;
}

}  // namespace leat
