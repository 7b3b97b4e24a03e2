#include "leat/index/member_index.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

#include "leat/base/errors.h"
#include "leat/codec/tar/tar_header.h"
#include "leat/index/sample_groups.h"

namespace leat {
namespace {

/// Cuts the text before the next `end` off; nullopt where there is no more.
std::optional<std::string_view> take_until(std::string_view& text, char end) {
  if (text.empty()) return std::nullopt;
  const std::size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

std::optional<std::uint64_t> take_number(std::string_view& line) {
  const auto word = take_until(line, ' ');
  if (!word) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(word->data(), word->data() + word->size(), number);
  if (error != std::errc() || end != word->data() + word->size()) {
    return std::nullopt;
  }
  return number;
}

/// True if DALI's extension of this name is `extension`: all behind the first
/// dot of the base name, or the whole name where there is no dot.
bool is_extension_of(std::string_view extension, std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  return extension ==
         (dot == std::string_view::npos ? name : name.substr(dot + 1));
}

class MemberIndexParser {
 public:
  explicit MemberIndexParser(std::uint64_t shard_bytes)
      : shard_bytes_(shard_bytes) {}

  Result<std::vector<Member>> parse(std::string_view text) {
    LEAT_TRY(const std::uint64_t samples, take_first_line(text));
    for (std::uint64_t i = 0; i < samples; ++i) {
      auto line = take_until(text, '\n');
      ++line_;
      if (!line || line->empty()) return corrupt("a sample is missing");
      while (!line->empty()) LEAT_TRY_VOID(take_member(*line));
    }
    if (!text.empty()) return corrupt("there is more after the last sample");
    return std::move(members_);
  }

 private:
  Result<std::uint64_t> take_first_line(std::string_view& text) {
    std::string_view line = take_until(text, '\n').value_or("");
    line_ = 1;
    const auto version = take_until(line, ' ').value_or("");
    if (version != "v1.2") {
      return invalid(
          fmt::format("line 1 does not begin with 'v1.2': make it again with a "
                      "newer wds2idx"));
    }
    const auto samples = take_number(line);
    // Each sample has a header in the shard, and a line.
    if (!samples || !line.empty() || *samples > shard_bytes_ / kTarBlockBytes) {
      return corrupt("no number of samples that the shard could hold");
    }
    return *samples;
  }

  Result<void> take_member(std::string_view& line) {
    const auto extension = take_until(line, ' ');
    const auto offset = take_number(line);
    const auto size = take_number(line);
    const auto name = take_until(line, ' ');
    if (!extension || !offset || !size || !name || name->empty()) {
      return corrupt("not EXTENSION OFFSET SIZE NAME");
    }
    // GNU tar, which wds2idx asks, writes odd bytes as '\303'.
    if (name->find('\\') != std::string_view::npos ||
        !is_extension_of(*extension, *name) || !check_member_name(*name)) {
      return corrupt("a name that cannot be told");
    }
    if (*offset % kTarBlockBytes != 0 || *offset < end_ + kTarBlockBytes ||
        *offset > shard_bytes_ || *size > shard_bytes_ - *offset) {
      return corrupt("a member that does not lie behind the last one");
    }
    end_ = *offset + *size;
    if (split_member(*name)) {
      members_.push_back({std::string(*name), *offset, *size});
    }
    return {};
  }

  Error corrupt(std::string_view why) const {
    return Error(ErrorCode::kCorrupt, fmt::format("line {}: {}", line_, why));
  }

  const std::uint64_t shard_bytes_;
  std::uint64_t line_ = 0;
  /// The end of the member before, at most shard_bytes_.
  std::uint64_t end_ = 0;
  std::vector<Member> members_;
};

}  // namespace

Result<std::vector<Member>> parse_member_index(std::string_view text,
                                               std::uint64_t shard_bytes) {
  return MemberIndexParser(shard_bytes).parse(text);
}

}  // namespace leat
