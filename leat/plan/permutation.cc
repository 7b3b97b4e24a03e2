// A cipher on [0, n), after J. Black and P. Rogaway, "Ciphers with Arbitrary
// Finite Domains", CT-RSA 2002.
//
// Their generalised Feistel network writes x < a * b as a pair (left, right)
// and replaces it, round by round, by (right, left + f(right)), f keyed and
// pseudo-random. We take a = b = ceil(sqrt(n)), so a * b exceeds n by less than
// 2 * sqrt(n). A result past n is enciphered again until it is not ("cycle
// walking"), which keeps it a bijection of [0, n) and happens to at most one
// index in thirty. Decipher runs the rounds backwards.
//
// Nothing here is secret, so f need not withstand an attacker: it must look
// random, which permutation_test.cc checks by chi-square. With four rounds pair
// distances still show the network's rows; with five they do not; it has eight.

#include "leat/plan/permutation.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/hash.h"

namespace leat {
namespace {

/// x as (left, right).
struct Pair {
  std::uint64_t left = 0;
  std::uint64_t right = 0;
};

Pair split(std::uint64_t x, const Divisor& side) {
  const Divisor::Parts parts = side.divide(x);
  return {parts.quotient, parts.remainder};
}

/// f: a number below `side` that looks random. A multiply-high takes the place
/// of a remainder (D. Lemire, "Fast Random Integer Generation in an Interval",
/// 2019); its bias is below side / 2^64.
inline std::uint64_t round_function(std::uint64_t half, std::uint64_t key,
                                    std::uint64_t side) {
  std::uint64_t h = (half + key) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 32)) * 0x94d049bb133111ebULL;
  return Divisor::high_half(h, side);
}

/// Undoes one round.
inline Pair round_back(Pair after, std::uint64_t key, std::uint64_t side) {
  const std::uint64_t f = round_function(after.left, key, side);
  return {after.right - f + (after.right < f ? side : 0), after.left};
}

/// The smallest s with s * s >= n. REQUIRES: n <= 2^62.
std::uint64_t ceil_sqrt(std::uint64_t n) {
  auto s = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(n)));
  while (s * s < n) ++s;  // The double is right to within a few.
  while (s > 0 && (s - 1) * (s - 1) >= n) --s;
  return s;
}

/// The i-th of the numbers that (seed, stream) stand for. Mixed apart, so that
/// seed 1 stream 2 and seed 2 stream 1 have nothing in common.
std::uint64_t derive_key(std::uint64_t seed, std::uint64_t stream,
                         std::uint64_t i) {
  return mix64(mix64(seed ^ mix64(2 * i)) + mix64(stream ^ mix64(2 * i + 1)));
}

}  // namespace

Permutation::Permutation(std::uint64_t n, std::uint64_t seed,
                         std::uint64_t stream)
    : n_(n) {
  LEAT_CHECK(n <= kMaxSize);
  if (n < kTableBelow) {
    table_ = make_table(n, derive_key(seed, stream, 0));
    return;
  }
  side_ = Divisor(ceil_sqrt(n));
  for (std::uint64_t i = 0; i < keys_.size(); ++i) {
    keys_[i] = derive_key(seed, stream, i);
  }
}

std::shared_ptr<const Permutation::Table> Permutation::make_table(
    std::uint64_t n, std::uint64_t key) {
  auto table = std::make_shared<Table>();
  table->at.resize(n);
  std::iota(table->at.begin(), table->at.end(), std::uint16_t{0});
  for (std::uint64_t left = n; left > 1; --left) {  // Fisher-Yates.
    const std::uint64_t drawn =
        Divisor::high_half(mix64(key ^ mix64(left)), left);
    std::swap(table->at[left - 1], table->at[drawn]);
  }
  table->position_of.resize(n);
  for (std::uint64_t p = 0; p < n; ++p) {
    table->position_of[table->at[p]] = static_cast<std::uint16_t>(p);
  }
  return table;
}

std::uint64_t Permutation::at(std::uint64_t position) const {
  if (table_ != nullptr) return table_->at[position];
  std::uint64_t x = position;
  do {
    x = encipher(x);
  } while (x >= n_);
  return x;
}

std::uint64_t Permutation::position_of(std::uint64_t value) const {
  if (table_ != nullptr) return table_->position_of[value];
  std::uint64_t x = value;
  do {
    x = decipher(x);
  } while (x >= n_);
  return x;
}

std::array<std::uint64_t, Permutation::kTogether> Permutation::positions_of(
    const std::array<const Permutation*, kTogether>& orders,
    std::uint64_t value) {
  std::array<std::uint64_t, kTogether> found;
  const Permutation& first = *orders[0];
  if (first.table_ != nullptr) {
    for (std::size_t i = 0; i < kTogether; ++i) {
      found[i] = orders[i]->position_of(value);
    }
    return found;
  }
  const std::uint64_t side = first.side_.value();
  std::array<Pair, kTogether> pairs;
  pairs.fill(split(value, first.side_));
  for (std::size_t round = kRounds; round-- > 0;) {
    // Written out, so that the pairs stay in registers.
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      ((pairs[i] = round_back(pairs[i], orders[i]->keys_[round], side)), ...);
    }
    (std::make_index_sequence<kTogether>());
  }
  for (std::size_t i = 0; i < kTogether; ++i) {
    found[i] = pairs[i].left * side + pairs[i].right;
    while (found[i] >= first.n_) found[i] = orders[i]->decipher(found[i]);
  }
  return found;
}

std::uint64_t Permutation::encipher(std::uint64_t x) const {
  const std::uint64_t side = side_.value();
  auto [left, right] = split(x, side_);
  for (const std::uint64_t key : keys_) {
    std::uint64_t sum = left + round_function(right, key, side);
    if (sum >= side) sum -= side;
    left = std::exchange(right, sum);
  }
  return left * side + right;
}

std::uint64_t Permutation::decipher(std::uint64_t x) const {
  const std::uint64_t side = side_.value();
  Pair pair = split(x, side_);
  for (auto key = keys_.rbegin(); key != keys_.rend(); ++key) {
    pair = round_back(pair, *key, side);
  }
  return pair.left * side + pair.right;
}

}  // namespace leat
