#include "leat/cache/memcached/piece.h"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <concepts>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::uint32_t kMagic = 0x3256504c;  // "LPV2"
constexpr std::size_t kCheckedBytes = 20;
constexpr std::size_t kSealBytes = kPieceHeaderBytes - kCheckedBytes;

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

EVP_MAC* siphash() {
  // Looking it up takes longer than a small piece does.
  static EVP_MAC* const found = EVP_MAC_fetch(nullptr, "SIPHASH", nullptr);
  return found;
}

template <std::unsigned_integral T>
void put(std::span<std::byte> into, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    into[at + i] = static_cast<std::byte>(value >> (8 * i));
  }
}

}  // namespace

std::size_t ValueSplit::bytes_of(std::uint32_t piece) const {
  return piece + 1 < pieces
             ? piece_bytes
             : static_cast<std::size_t>(value_bytes - offset_of(piece));
}

ValueSplit split_value(std::uint64_t value_bytes) {
  LEAT_CHECK(value_bytes > 0 && value_bytes <= kMostPeerValueBytes);
  const std::uint64_t pieces =
      (value_bytes + kMostPieceBytes - 1) / kMostPieceBytes;
  return {.value_bytes = value_bytes,
          .pieces = static_cast<std::uint32_t>(pieces),
          .piece_bytes =
              static_cast<std::size_t>((value_bytes + pieces - 1) / pieces)};
}

PeerKey peer_key_of(std::string_view secret) {
  PeerKey key{};
  if (secret.empty()) return key;
  std::array<std::byte, 32> digest{};
  LEAT_CHECK(EVP_Q_digest(nullptr, "SHA256", nullptr, secret.data(),
                          secret.size(),
                          reinterpret_cast<unsigned char*>(digest.data()),
                          nullptr) == 1);
  std::copy_n(digest.begin(), key.size(), key.begin());
  return key;
}

struct PieceSeal::Mac {
  EVP_MAC_CTX* context = nullptr;
  PeerKey key{};
  ~Mac() { EVP_MAC_CTX_free(context); }
};

PieceSeal::PieceSeal(const PeerKey& key) : mac_(std::make_unique<Mac>()) {
  mac_->context = EVP_MAC_CTX_new(siphash());
  mac_->key = key;
  std::size_t bytes = kSealBytes;
  const OSSL_PARAM size[] = {
      OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &bytes),
      OSSL_PARAM_construct_end()};
  LEAT_CHECK(EVP_MAC_CTX_set_params(mac_->context, size) == 1);
}

PieceSeal::~PieceSeal() = default;
PieceSeal::PieceSeal(PieceSeal&&) noexcept = default;

Result<void> PieceSeal::check_openssl() {
  if (siphash() != nullptr) return {};
  return unavailable(
      "this machine's OpenSSL has no SipHash, which seals what peers keep; "
      "leave out peers=, or load OpenSSL's default provider");
}

PieceHeader PieceSeal::make_header(const Hash128& key, const ValueSplit& split,
                                   std::uint32_t piece,
                                   std::span<const std::byte> payload) {
  PieceHeader header{};
  put(header, 0, kMagic);
  put(header, 4, piece);
  put(header, 8, split.pieces);
  put(header, 12, split.value_bytes);
  std::array<std::byte, 16> name{};
  put(name, 0, key.high);
  put(name, 8, key.low);
  const auto seal = std::span(header).subspan(kCheckedBytes);
  std::size_t bytes = 0;
  LEAT_CHECK(EVP_MAC_init(mac_->context, raw(mac_->key), mac_->key.size(),
                          nullptr) == 1 &&
             EVP_MAC_update(mac_->context, raw(name), name.size()) == 1 &&
             EVP_MAC_update(mac_->context, raw(header), kCheckedBytes) == 1 &&
             EVP_MAC_update(mac_->context, raw(payload), payload.size()) == 1 &&
             EVP_MAC_final(mac_->context,
                           reinterpret_cast<unsigned char*>(seal.data()),
                           &bytes, seal.size()) == 1 &&
             bytes == kSealBytes);
  return header;
}

bool PieceSeal::is_piece(const PieceHeader& header, const Hash128& key,
                         const ValueSplit& split, std::uint32_t piece,
                         std::span<const std::byte> payload) {
  if (payload.size() != split.bytes_of(piece)) return false;
  // The exact piece that a writer would have made of the value.
  const PieceHeader right = make_header(key, split, piece, payload);
  return CRYPTO_memcmp(header.data(), right.data(), right.size()) == 0;
}

std::string piece_name(const Hash128& key, std::uint32_t piece) {
  return fmt::format("leat:{}:{}", key.hex(), piece);
}

}  // namespace leat
