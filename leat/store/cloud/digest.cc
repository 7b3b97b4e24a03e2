// HMAC is written out over one digest context that each thread keeps, since
// OpenSSL 3 looks algorithms up anew for each HMAC() call.

#include "leat/store/cloud/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "leat/base/check.h"

namespace leat {
namespace {

constexpr std::size_t kBlock = 64;  // The block size of SHA-256.

/// SHA-256 over pieces, in this thread's own context.
class Digest {
 public:
  Digest() : context_(thread_context()) {
    static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", "");
    LEAT_CHECK(EVP_DigestInit_ex(context_, algorithm, nullptr) == 1);
  }

  void add(const void* bytes, std::size_t size) {
    LEAT_CHECK(EVP_DigestUpdate(context_, bytes, size) == 1);
  }

  Sha256 finish() {
    Sha256 digest;
    LEAT_CHECK(EVP_DigestFinal_ex(context_, digest.data(), nullptr) == 1);
    return digest;
  }

 private:
  static EVP_MD_CTX* thread_context() {
    struct Free {
      void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    };
    thread_local const std::unique_ptr<EVP_MD_CTX, Free> context(
        EVP_MD_CTX_new());
    LEAT_CHECK(context != nullptr);
    return context.get();
  }

  EVP_MD_CTX* const context_;
};

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

std::string in_64_letters(std::string_view bytes, std::string_view last_two) {
  const auto letter = [last_two](std::uint32_t value) {
    return value < 62 ? kLetters[value] : last_two[value - 62];
  };
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : bytes) {
    held = held << 8 | static_cast<unsigned char>(c);
    for (bits += 8; bits >= 6;) out += letter(held >> (bits -= 6) & 63);
  }
  if (bits > 0) out += letter(held << (6 - bits) & 63);
  return out;
}

}  // namespace

std::string_view as_view(const Sha256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

void append_hex(std::string& out, const Sha256& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const unsigned char byte : digest) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

Sha256 sha256(std::string_view bytes) {
  Digest digest;
  digest.add(bytes.data(), bytes.size());
  return digest.finish();
}

Sha256 hmac_sha256(std::string_view key, std::string_view message) {
  std::array<unsigned char, kBlock> padded{};
  if (key.size() > kBlock) {
    const Sha256 shorter = sha256(key);
    std::copy(shorter.begin(), shorter.end(), padded.begin());
  } else {
    std::copy(key.begin(), key.end(), padded.begin());
  }
  for (unsigned char& byte : padded) byte ^= 0x36;
  Digest inner;
  inner.add(padded.data(), padded.size());
  inner.add(message.data(), message.size());
  const Sha256 inside = inner.finish();
  for (unsigned char& byte : padded) byte ^= 0x36 ^ 0x5c;
  Digest outer;
  outer.add(padded.data(), padded.size());
  outer.add(inside.data(), inside.size());
  return outer.finish();
}

std::string hex(const Sha256& digest) {
  std::string out;
  append_hex(out, digest);
  return out;
}

std::string sha256_hex(std::string_view bytes) { return hex(sha256(bytes)); }

std::string base64(std::string_view bytes) {
  std::string out = in_64_letters(bytes, "+/");
  out.append((4 - out.size() % 4) % 4, '=');
  return out;
}

std::string base64_url(std::string_view bytes) {
  return in_64_letters(bytes, "-_");
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string out;
  std::uint32_t held = 0;
  int bits = 0;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(1)) {
    if (rest == "=" || rest == "==") break;
    std::size_t value = kLetters.find(rest.front());
    if (rest.front() == '+') value = 62;
    if (rest.front() == '/') value = 63;
    if (value == std::string_view::npos) return std::nullopt;
    held = held << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits >= 8) out += static_cast<char>(held >> (bits -= 8) & 0xff);
  }
  // base64() puts nothing else into the padding or the bits that are left.
  if (base64(out) != text) return std::nullopt;
  return out;
}

}  // namespace leat
