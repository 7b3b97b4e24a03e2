#include "leat/cache/memcached/reply_parser.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "leat/base/buffer.h"

namespace leat {
namespace {

using Kind = ReplyEvent::Kind;

constexpr std::string_view kLineEnd = "\r\n";

/// Takes the first word; `line` keeps what follows its space.
std::string_view take_word(std::string_view& line) {
  const std::size_t space = line.find(' ');
  const std::string_view word = line.substr(0, space);
  line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
  return word;
}

/// A flag is a letter, some with a token, between spaces.
bool has_flag(std::string_view flags, char flag) {
  while (!flags.empty()) {
    if (take_word(flags).starts_with(flag)) return true;
  }
  return false;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failed] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace

ReplyEvent MemcachedReplyParser::broken() {
  state_ = State::kBroken;
  return {.kind = Kind::kBroken};
}

ReplyEvent MemcachedReplyParser::next(std::span<const std::byte>& input) {
  switch (state_) {
    case State::kBroken:
      return broken();
    case State::kValue:
      return take_value(input);
    case State::kTail:
      return take_tail(input);
    case State::kLine:
      return take_line(input);
  }
  return broken();
}

ReplyEvent MemcachedReplyParser::take_value(std::span<const std::byte>& input) {
  if (left_ == 0) {
    state_ = State::kTail;
    return take_tail(input);
  }
  if (input.empty()) return {};
  const std::size_t taken =
      static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
  const auto payload = input.first(taken);
  input = input.subspan(taken);
  left_ -= taken;
  return {.kind = Kind::kBytes, .payload = payload};
}

ReplyEvent MemcachedReplyParser::take_tail(std::span<const std::byte>& input) {
  while (left_ < kLineEnd.size()) {
    if (input.empty()) return {};
    const char c = static_cast<char>(input.front());
    if (c != kLineEnd[static_cast<std::size_t>(left_)]) return broken();
    input = input.subspan(1);
    ++left_;
  }
  state_ = State::kLine;
  return {.kind = Kind::kValueEnd};
}

ReplyEvent MemcachedReplyParser::take_line(std::span<const std::byte>& input) {
  if (is_line_whole_) {
    line_.clear();
    is_line_whole_ = false;
  }
  const auto end = std::find(input.begin(), input.end(), std::byte{'\n'});
  const auto size = static_cast<std::size_t>(end - input.begin());
  const bool is_whole = end != input.end();
  if (line_.size() + size > kMostLineBytes) return broken();
  line_ += as_text(input.first(size));
  input = input.subspan(size + (is_whole ? 1 : 0));
  if (!is_whole) return {};
  is_line_whole_ = true;
  if (!line_.ends_with('\r')) return broken();
  line_.pop_back();
  return read_line();
}

ReplyEvent MemcachedReplyParser::read_line() {
  std::string_view rest = line_;
  const std::string_view word = take_word(rest);
  if (word == "VA") {
    const auto bytes = number(take_word(rest));
    if (!bytes || *bytes > kMostValueBytes) return broken();
    state_ = State::kValue;
    left_ = *bytes;
    return {
        .kind = Kind::kValue, .bytes = *bytes, .is_won = has_flag(rest, 'W')};
  }
  if (word == "HD") return {.kind = Kind::kDone};
  if (word == "EN" || word == "NF") return {.kind = Kind::kMiss};
  if (word == "NS" || word == "EX") return {.kind = Kind::kNotStored};
  if (word == "STAT") return {.kind = Kind::kStatistic, .text = rest};
  if (word == "END") return {.kind = Kind::kStatisticsEnd};
  if (word != "SERVER_ERROR") return broken();
  return {.kind = rest.starts_with("out of memory") ? Kind::kNoMemory
                                                    : Kind::kFailed,
          .text = rest};
}

}  // namespace leat
