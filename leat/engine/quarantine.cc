#include "leat/engine/quarantine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <span>
#include <utility>

#include "leat/base/hash.h"
#include "leat/runtime/log.h"
#include "leat/runtime/trust.h"

namespace leat {
namespace {

constexpr std::size_t kMostLineBytes = 4096;
constexpr std::size_t kChunkBytes = 1 << 16;
/// More bad samples are counted, and are in the file.
constexpr std::uint64_t kMostTold = 20;
constexpr std::string_view kBad = "bad";
constexpr std::string_view kSkipped = "skipped";

/// One line, whatever the text has.
std::string in_line(std::string_view text) {
  std::string plain(text.substr(0, kMostLineBytes / 4));
  for (char& c : plain) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
  }
  return plain;
}

std::optional<std::string_view> next_part(std::string_view& rest) {
  const std::size_t end = rest.find('\t');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return part;
}

}  // namespace

std::string to_line(const Exclusion& exclusion) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\n",
                     exclusion.why == Excluded::kBad ? kBad : kSkipped,
                     exclusion.sample.value, in_line(exclusion.version),
                     in_line(exclusion.key), in_line(exclusion.cause));
}

std::optional<Exclusion> parse_exclusion(std::string_view line) {
  Exclusion found;
  const auto why = next_part(line);
  const auto number = next_part(line);
  const auto version = next_part(line);
  const auto key = next_part(line);
  if (!why || !number || !version || !key ||
      (*why != kBad && *why != kSkipped)) {
    return std::nullopt;
  }
  found.version = *version;
  found.why = *why == kBad ? Excluded::kBad : Excluded::kSkipped;
  const char* const end = number->data() + number->size();
  const auto [stop, error] =
      std::from_chars(number->data(), end, found.sample.value);
  if (error != std::errc() || stop != end) return std::nullopt;
  found.key = *key;
  found.cause = line;
  return found;
}

Quarantine::Quarantine(QuarantineOptions options)
    : options_(std::move(options)),
      is_hopeless_(options_.path.empty()),
      samples_([this](const Exclusion& exclusion) { note(exclusion); }) {}

bool Quarantine::is_kept(const Exclusion& exclusion) const {
  return exclusion.why == Excluded::kBad ||
         std::ranges::find(options_.filters, exclusion.cause) !=
             options_.filters.end();
}

bool Quarantine::is_of_now(const Exclusion& exclusion) const {
  const std::optional<std::string> now = options_.version_of(exclusion.sample);
  return now && *now == exclusion.version;
}

void Quarantine::tell(const Exclusion& exclusion) {
  if (exclusion.why != Excluded::kBad || told_ > kMostTold) return;
  if (++told_ > kMostTold) {
    return log_warning(fmt::format(
        "{}: more than {} samples are bad: the others are not named here{}",
        options_.url, kMostTold,
        options_.path.empty() ? "" : "; " + options_.path + " names all"));
  }
  log_warning(fmt::format(
      "sample {} \"{}\": {}: another sample of the epoch takes its place",
      exclusion.sample.value, exclusion.key, exclusion.cause));
}

void Quarantine::note(const Exclusion& exclusion) {
  tell(exclusion);
  if (is_hopeless_ || !is_kept(exclusion)) return;
  if (!to_write_) {
    const auto folder = std::filesystem::path(options_.path).parent_path();
    if (make_own_folder(folder)) {
      to_write_ = OwnedFd(
          ::open(options_.path.c_str(),
                 O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    }
    if (!to_write_ || !is_trusted_file(to_write_.get(), options_.path)) {
      log_debug("no samples are noted in " + options_.path);
      is_hopeless_ = true;
      return;
    }
  }
  // One call a line, so that those of several processes do not mix.
  const std::string line = to_line(exclusion);
  const ssize_t written = ::write(to_write_.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return;
  log_debug("a sample could not be noted in " + options_.path);
  is_hopeless_ = true;
}

void Quarantine::take(std::string_view line) {
  const std::optional<Exclusion> known = parse_exclusion(line);
  if (!known || !is_kept(*known) || !is_of_now(*known)) return;
  if (known->why == Excluded::kBad && !options_.passes_bad) return;
  samples_.know(known->sample, known->why);
}

void Quarantine::look() {
  if (options_.path.empty()) return;
  if (!to_read_) {
    Result<OwnedFd> file = open_own_file(options_.path, O_RDONLY | O_CLOEXEC);
    if (!file) return;  // Nobody has written it, or it is not to be believed.
    to_read_ = *std::move(file);
  }
  std::array<char, kChunkBytes> chunk{};
  while (true) {
    const ssize_t got = ::pread(to_read_.get(), chunk.data(), chunk.size(),
                                static_cast<off_t>(read_bytes_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    read_bytes_ += static_cast<std::uint64_t>(got);
    rest_.append(chunk.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end = 0;
         (end = rest_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      take(std::string_view(rest_).substr(begin, end - begin));
    }
    rest_.erase(0, begin);
    if (rest_.size() > kMostLineBytes) rest_.clear();  // No line of ours.
  }
}

void Quarantine::introduce() const {
  const std::uint64_t bad = samples_.count(Excluded::kBad);
  const std::uint64_t skipped = samples_.count(Excluded::kSkipped);
  if (bad != 0) {
    log_warning(fmt::format(
        "{}: {} samples are known to be bad and are passed over without a look "
        "at them; {} names them, and without that file they are read again",
        options_.url, bad, options_.path));
  }
  if (skipped != 0) {
    log_info(fmt::format(
        "{}: {} samples are known to be skipped by filters, and are not read",
        options_.url, skipped));
  }
}

std::string quarantine_path(std::string_view identity, const Env& env) {
  const auto folder = user_cache_folder(env);
  if (!folder) return "";
  const std::string own = *folder + "/quarantine";
  if (!is_trusted_folder(own, "the folder of bad samples")) return "";
  return fmt::format("{}/{}.tsv", own,
                     xxh3_128(std::as_bytes(std::span(identity))).hex());
}

}  // namespace leat
