#include "leat/bucket/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/base/text.h"
#include "leat/base/units.h"

namespace leat {
namespace {

constexpr std::array<std::string_view, 7> kMethods{
    "*", "GET", "HEAD", "LIST", "PUT", "DELETE", "POST"};

std::optional<double> parse_percentage(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  const auto percent = number_from<double>(text);
  if (!percent || !(*percent >= 0.0 && *percent <= 100.0)) return std::nullopt;
  return *percent / 100.0;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kSpace = " \t\r";
  while (true) {
    const std::size_t begin = line.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    words.push_back(line.substr(0, line.find_first_of(kSpace)));
    line.remove_prefix(words.back().size());
  }
}

Result<void> read_option(std::string_view word, FaultLine& line) {
  if (const auto probability = parse_percentage(word)) {
    line.probability = *probability;
    return {};
  }
  if (word == "x*") {
    line.times = UINT64_MAX;
    return {};
  }
  const auto times = word.starts_with('x')
                         ? number_from<std::uint64_t>(word.substr(1))
                         : std::nullopt;
  if (!times) return invalid("'{}' is neither x3 nor 50%", word);
  line.times = *times;
  return {};
}

Result<FaultLine> parse_line(const std::vector<std::string_view>& words) {
  if (words.size() < 5 || words[0] != "after") {
    return invalid("a line reads: after N METHOD KEY-PREFIX FAULT [xN] [P%]");
  }
  FaultLine line;
  const auto after = number_from<std::uint64_t>(words[1]);
  if (!after) return invalid("'{}' is not a number", words[1]);
  line.after = *after;
  if (std::find(kMethods.begin(), kMethods.end(), words[2]) == kMethods.end()) {
    return invalid("'{}' is none of GET HEAD LIST PUT DELETE POST *", words[2]);
  }
  if (words[2] != "*") line.method = words[2];
  if (words[3] != "*") line.prefix = words[3];
  LEAT_TRY(line.fault, parse_fault(words[4]));
  for (std::size_t i = 5; i < words.size(); ++i) {
    LEAT_TRY_VOID(read_option(words[i], line));
  }
  return line;
}

bool matches(const FaultLine& line, const FaultQuestion& question) {
  if (!line.method.empty() && line.method != question.method) return false;
  if (!line.prefix.starts_with('/')) {
    return question.key.starts_with(line.prefix);
  }
  return fmt::format("/{}/{}", question.bucket, question.key)
      .starts_with(line.prefix);
}

/// In [0, 1).
double below_one(std::uint64_t bits) { return double(bits >> 11) * 0x1.0p-53; }

}  // namespace

Result<Fault> parse_fault(std::string_view text) {
  using Kind = Fault::Kind;
  constexpr std::string_view kSlow = "slow:";
  if (text == "reset") return Fault{.kind = Kind::kReset};
  if (text == "truncate") return Fault{.kind = Kind::kTruncate};
  if (text == "stall") return Fault{.kind = Kind::kStall};
  if (text == "trickle") return Fault{.kind = Kind::kTrickle};
  if (text == "flip") return Fault{.kind = Kind::kFlip};
  if (text.starts_with(kSlow)) {
    const auto delay = parse_duration(text.substr(kSlow.size()));
    if (delay) return Fault{.kind = Kind::kSlow, .delay = *delay};
  }
  const auto status = number_from<int>(text);
  if (status && *status >= 400 && *status <= 599) {
    return Fault{.kind = Kind::kStatus, .status = *status};
  }
  return invalid(
      "'{}' is no fault: give a status from 400 to 599, reset, truncate, "
      "stall, trickle, flip or slow:2s",
      text);
}

Result<FaultRate> parse_fault_rate(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const auto probability = colon == std::string_view::npos
                               ? std::nullopt
                               : parse_percentage(text.substr(colon + 1));
  if (!probability) {
    return invalid("fault '{}' has no percentage; write it as in 503:1%", text);
  }
  LEAT_TRY(const Fault fault, parse_fault(text.substr(0, colon)));
  return FaultRate{fault, *probability};
}

Result<std::vector<FaultLine>> parse_fault_script(std::string_view text) {
  std::vector<FaultLine> script;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
    if (words.empty() || words[0].starts_with('#')) continue;
    auto line = parse_line(words);
    if (!line) {
      return std::move(line).error().while_doing(
          fmt::format("line {} of the fault script", number));
    }
    script.push_back(*std::move(line));
  }
  return script;
}

FaultInjector::FaultInjector(std::uint64_t seed, std::vector<FaultRate> rates,
                             std::vector<FaultLine> script,
                             std::size_t most_targets)
    : seed_(seed),
      rates_(std::move(rates)),
      script_(std::move(script)),
      most_targets_(most_targets),
      matched_(script_.size()) {}

Fault FaultInjector::draw(const FaultQuestion& question) {
  if (rates_.empty() && script_.empty()) return {};
  std::uint64_t luck = mix64(seed_);
  for (const std::string_view part :
       {question.method, question.bucket, question.key, question.range}) {
    luck = xxh3_64(as_bytes(part), luck);
  }
  MutexLock lock(mutex_);
  if (const auto fault = draw_from_script(question)) return *fault;
  if (rates_.empty()) return {};
  luck = mix64(luck + times_asked(luck));
  for (const FaultRate& rate : rates_) {
    luck = mix64(luck);
    if (below_one(luck) < rate.probability) return rate.fault;
  }
  return {};
}

/// And counts this time.
std::uint64_t FaultInjector::times_asked(std::uint64_t target) {
  if (asked_.size() < most_targets_) return asked_[target]++;
  const auto found = asked_.find(target);
  return found != asked_.end() ? found->second++ : asked_of_others_++;
}

std::optional<Fault> FaultInjector::draw_from_script(
    const FaultQuestion& question) {
  std::optional<Fault> fault;
  for (std::size_t i = 0; i < script_.size(); ++i) {
    const FaultLine& line = script_[i];
    if (!matches(line, question)) continue;
    const std::uint64_t n = matched_[i]++;  // Counted by every line it matches.
    if (fault || n < line.after || n - line.after >= line.times) continue;
    if (below_one(mix64(mix64(seed_ + i) ^ n)) < line.probability) {
      fault = line.fault;
    }
  }
  return fault;
}

}  // namespace leat
