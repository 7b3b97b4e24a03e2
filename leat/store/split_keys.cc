// A key is read as a number in mixed radix: each position counts through the
// characters that are likely there. Both ends of the range become fractions of
// 1, and the points between them are turned back into keys. Nothing depends on
// the arithmetic being exact: a guess that is not within the range is dropped.

#include "leat/store/split_keys.h"

#include <algorithm>
#include <bitset>
#include <utility>

namespace leat {
namespace {

constexpr std::size_t kMostPositions = 64;
constexpr double kFinest = 1e-12;  // A double holds no more.

/// The characters that are likely at one position, in byte order.
using Alphabet = std::string;
/// One for each position after the prefix.
using Alphabets = std::vector<Alphabet>;

bool is_within(char c, char first, char last) {
  return c >= first && c <= last;
}

void add_range(std::bitset<256>& set, char first, char last) {
  for (char c = first; c <= last; ++c) set.set(static_cast<unsigned char>(c));
}

/// Adds the class of characters that `c` belongs to.
void add_class_of(std::bitset<256>& set, char c, bool is_hex) {
  if (is_within(c, '0', '9')) return add_range(set, '0', '9');
  if (is_within(c, 'a', 'z')) return add_range(set, 'a', is_hex ? 'f' : 'z');
  if (is_within(c, 'A', 'Z')) return add_range(set, 'A', is_hex ? 'F' : 'Z');
  if (is_within(c, ' ', '~')) set.set(static_cast<unsigned char>(c));
}

Alphabet alphabet_of(const std::bitset<256>& seen) {
  std::string found;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) found += static_cast<char>(i);
  }
  const bool is_constant = found.size() == 1 && !is_within(found[0], '0', '9');
  if (is_constant) return found;
  const bool is_hex = std::all_of(found.begin(), found.end(), [](char c) {
    return !is_within(c, 'g', 'z') && !is_within(c, 'G', 'Z');
  });
  std::bitset<256> likely;
  for (const char c : found) add_class_of(likely, c, is_hex);
  Alphabet alphabet;
  for (std::size_t i = 0; i < likely.size(); ++i) {
    if (likely[i]) alphabet += static_cast<char>(i);
  }
  return alphabet.empty() ? found.substr(0, 1) : alphabet;
}

/// Returns an alphabet for each position from `skip` to the end of the
/// longest of `seen`.
Alphabets learn(std::span<const std::string_view> seen, std::size_t skip) {
  std::vector<std::bitset<256>> sets;
  for (const std::string_view key : seen) {
    const std::size_t size = std::min(key.size(), skip + kMostPositions);
    if (sets.size() + skip < size) sets.resize(size - skip);
    for (std::size_t i = skip; i < size; ++i) {
      sets[i - skip].set(static_cast<unsigned char>(key[i]));
    }
  }
  Alphabets alphabets;
  alphabets.reserve(sets.size());
  for (const auto& set : sets) alphabets.push_back(alphabet_of(set));
  return alphabets;
}

Alphabets all_printable() {
  Alphabet alphabet;
  for (char c = ' '; c <= '~'; ++c) alphabet += c;
  return {3, alphabet};
}

/// `tail` as a fraction of 1, from position `from` on.
double fraction_of(std::string_view tail, const Alphabets& alphabets,
                   std::size_t from) {
  double value = 0;
  double weight = 1;
  for (std::size_t i = from;
       i < tail.size() && i < alphabets.size() && weight > kFinest; ++i) {
    const Alphabet& alphabet = alphabets[i];
    const std::size_t rank = static_cast<std::size_t>(
        std::lower_bound(alphabet.begin(), alphabet.end(), tail[i],
                         [](char a, char b) {
                           return static_cast<unsigned char>(a) <
                                  static_cast<unsigned char>(b);
                         }) -
        alphabet.begin());
    weight /= static_cast<double>(alphabet.size());
    value += weight * static_cast<double>(rank);
    if (rank == alphabet.size() || alphabet[rank] != tail[i]) break;
  }
  return std::min(value, 1.0);
}

/// The shortest text that stands for `value` to within `precision`.
std::string text_of(double value, const Alphabets& alphabets, std::size_t from,
                    double precision) {
  std::string text;
  double weight = 1;
  for (std::size_t i = from; i < alphabets.size() && weight > precision; ++i) {
    const Alphabet& alphabet = alphabets[i];
    const double scaled = value * static_cast<double>(alphabet.size());
    const std::size_t rank =
        std::min(static_cast<std::size_t>(scaled), alphabet.size() - 1);
    text += alphabet[rank];
    value = std::clamp(scaled - static_cast<double>(rank), 0.0, 1.0);
    weight /= static_cast<double>(alphabet.size());
  }
  return text;
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

/// True if `text` is ASCII without control characters, or complete sequences
/// of UTF-8 (overlong ones and surrogates pass; no guess makes any).
bool is_sendable(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      if (lead < 0x20 || lead == 0x7f) return false;
      continue;
    }
    const std::size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i <= more) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      if (!is_continuation(text[i + k])) return false;
    }
    i += more;
  }
  return true;
}

bool is_strictly_within(std::string_view key, const KeyRange& range) {
  return key > range.after && (!range.upto || key < *range.upto);
}

std::size_t shared(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

std::vector<std::string> interpolate(std::string_view prefix,
                                     const KeyRange& range,
                                     const Alphabets& alphabets,
                                     std::size_t count) {
  const std::string_view low =
      std::string_view(range.after)
          .substr(std::min(prefix.size(), range.after.size()));
  const std::string_view high =
      range.upto ? std::string_view(*range.upto)
                       .substr(std::min(prefix.size(), range.upto->size()))
                 : std::string_view();
  // All keys between two ends begin with the ends' common prefix.
  const std::size_t from =
      range.upto ? std::min(shared(low, high), alphabets.size()) : 0;
  const double first = fraction_of(low, alphabets, from);
  const double last = range.upto ? fraction_of(high, alphabets, from) : 1.0;
  const double step = (last - first) / static_cast<double>(count + 1);
  std::vector<std::string> keys;
  if (step <= kFinest) return keys;
  for (std::size_t i = 1; i <= count; ++i) {
    std::string key(prefix);
    key.append(low.substr(0, from));
    key += text_of(first + step * static_cast<double>(i), alphabets, from,
                   step / 4);
    if (!is_strictly_within(key, range) || !is_sendable(key)) continue;
    if (keys.empty() || keys.back() < key) keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace

std::vector<std::string> guess_split_keys(
    std::string_view prefix, const KeyRange& range,
    std::span<const std::string_view> seen, std::size_t count) {
  if (count == 0) return {};
  const Alphabets likely = learn(seen, prefix.size());
  std::vector<std::string> keys = interpolate(prefix, range, likely, count);
  if (!keys.empty()) return keys;
  // The likely characters are used up; the rest may be of another kind.
  const std::size_t first_free =
      range.upto ? shared(range.after, *range.upto) : prefix.size();
  Alphabets any(first_free - std::min(first_free, prefix.size()), "?");
  for (Alphabet& alphabet : all_printable()) any.push_back(std::move(alphabet));
  return interpolate(prefix, range, any, count);
}

std::vector<std::string> pick_split_keys(
    const KeyRange& range, std::span<const std::string> candidates,
    std::size_t count) {
  const auto first =
      std::upper_bound(candidates.begin(), candidates.end(), range.after);
  const auto last = range.upto
                        ? std::lower_bound(first, candidates.end(), *range.upto)
                        : candidates.end();
  const auto found = static_cast<std::size_t>(last - first);
  const std::size_t picked = std::min(count, found);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < picked; ++i) {
    // The middles of `picked` equal parts, so that both outer parts get theirs.
    keys.push_back(
        first[static_cast<std::ptrdiff_t>((2 * i + 1) * found / (2 * picked))]);
  }
  return keys;
}

}  // namespace leat
