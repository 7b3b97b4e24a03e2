// The four steps of Signature Version 4: canonical request, string to sign,
// signing key, signature. HMAC is written out over one digest context that each
// thread keeps, since OpenSSL 3 looks algorithms up anew for each HMAC() call.

#include "leat/store/s3/aws/sigv4.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "leat/base/check.h"

namespace leat {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
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

constexpr bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

void put_number(char* at, unsigned value, int digits) {
  for (int i = digits - 1; i >= 0; --i, value /= 10) {
    at[i] = static_cast<char>('0' + value % 10);
  }
}

std::optional<int> take_number(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

/// Appends a header's value without blanks around it and with one where there
/// were several.
void append_trimmed(std::string& out, std::string_view value) {
  const std::size_t begin = out.size();
  bool owes_blank = false;
  for (const char c : value) {
    if (c == ' ' || c == '\t') {
      owes_blank = out.size() > begin;
      continue;
    }
    if (owes_blank) out += ' ';
    owes_blank = false;
    out += c;
  }
}

void append_header_names(std::string& out, const SigningRequest& request) {
  bool is_first = true;
  for (const auto& header : request.headers) {
    if (!is_first) out += ';';
    is_first = false;
    out += header.name;
  }
}

}  // namespace

AmzDate::AmzDate(WallTime time) : time_(time), text_{} {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const int year = static_cast<int>(date.year());
  LEAT_CHECK(year >= 0 && year <= 9999);
  char* const at = text_.data();
  put_number(at, static_cast<unsigned>(year), 4);
  put_number(at + 4, static_cast<unsigned>(date.month()), 2);
  put_number(at + 6, static_cast<unsigned>(date.day()), 2);
  at[8] = 'T';
  put_number(at + 9, static_cast<unsigned>(clock.hours().count()), 2);
  put_number(at + 11, static_cast<unsigned>(clock.minutes().count()), 2);
  put_number(at + 13, static_cast<unsigned>(clock.seconds().count()), 2);
  at[15] = 'Z';
}

std::optional<AmzDate> AmzDate::parse(std::string_view text) {
  if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z') {
    return std::nullopt;
  }
  const auto date = take_number(text.substr(0, 8));
  const auto clock = take_number(text.substr(9, 6));
  if (!date || !clock) return std::nullopt;
  const std::chrono::year_month_day day(
      std::chrono::year(*date / 10000),
      std::chrono::month(static_cast<unsigned>(*date / 100 % 100)),
      std::chrono::day(static_cast<unsigned>(*date % 100)));
  const int hour = *clock / 10000;
  const int minute = *clock / 100 % 100;
  const int second = *clock % 100;
  if (!day.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return AmzDate(std::chrono::sys_days(day) + std::chrono::hours(hour) +
                 std::chrono::minutes(minute) + std::chrono::seconds(second));
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

void append_uri_encoded(std::string& out, std::string_view text, Slash slash) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto stays = [slash](char c) {
    return is_unreserved(c) || (c == '/' && slash == Slash::kKeep);
  };
  while (!text.empty()) {
    const auto run = std::ranges::find_if_not(text, stays);
    const auto run_bytes = static_cast<std::size_t>(run - text.begin());
    out.append(text.substr(0, run_bytes));
    text.remove_prefix(run_bytes);
    if (text.empty()) return;
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

std::string uri_encode(std::string_view text, Slash slash) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  append_uri_encoded(out, text, slash);
  return out;
}

std::string uri_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && text.size() - i > 2) {
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

std::string canonical_query(const QueryPairs& query) {
  QueryPairs encoded;
  encoded.reserve(query.size());
  for (const auto& [name, value] : query) {
    encoded.emplace_back(uri_encode(name, Slash::kEncode),
                         uri_encode(value, Slash::kEncode));
  }
  std::sort(encoded.begin(), encoded.end());  // After encoding: AWS's rule.
  std::string out;
  for (const auto& [name, value] : encoded) {
    if (!out.empty()) out += '&';
    out.append(name).append("=").append(value);
  }
  return out;
}

std::string canonical_request(const SigningRequest& request) {
  std::string out;
  out.reserve(512);
  out.append(request.method).append("\n");
  out.append(request.path).append("\n");
  out.append(request.query).append("\n");
  for (const auto& header : request.headers) {
    out.append(header.name).append(":");
    append_trimmed(out, header.value);
    out += '\n';
  }
  out += '\n';
  append_header_names(out, request);
  out.append("\n").append(request.payload_hash);
  return out;
}

std::string signed_header_names(const SigningRequest& request) {
  std::string out;
  append_header_names(out, request);
  return out;
}

std::string credential_scope(std::string_view day, std::string_view region,
                             std::string_view service) {
  std::string out;
  out.reserve(64);
  out.append(day).append("/").append(region).append("/");
  out.append(service).append("/aws4_request");
  return out;
}

std::string string_to_sign(const AmzDate& date, std::string_view scope,
                           std::string_view canonical_request) {
  std::string out;
  out.reserve(192);
  out.append(kAlgorithm).append("\n");
  out.append(date.text()).append("\n");
  out.append(scope).append("\n");
  append_hex(out, sha256(canonical_request));
  return out;
}

Sha256 signing_key(std::string_view secret_access_key, std::string_view day,
                   std::string_view region, std::string_view service) {
  const std::string secret = std::string("AWS4").append(secret_access_key);
  const Sha256 of_day = hmac_sha256(secret, day);
  const Sha256 of_region = hmac_sha256(as_view(of_day), region);
  const Sha256 of_service = hmac_sha256(as_view(of_region), service);
  return hmac_sha256(as_view(of_service), "aws4_request");
}

Signer::Signer(AwsCredentials credentials, std::string region,
               std::string service)
    : credentials_(std::move(credentials)),
      region_(std::move(region)),
      service_(std::move(service)) {}

std::string Signer::signature(const SigningRequest& request,
                              const AmzDate& date) const {
  const Sha256 key = key_of(date.day());
  return hex(hmac_sha256(
      as_view(key),
      string_to_sign(date, credential_scope(date.day(), region_, service_),
                     canonical_request(request))));
}

std::string Signer::authorization(const SigningRequest& request,
                                  const AmzDate& date) const {
  std::string out;
  out.reserve(320);
  out.append(kAlgorithm).append(" Credential=");
  out.append(credentials_.access_key_id).append("/");
  out.append(credential_scope(date.day(), region_, service_));
  out.append(",SignedHeaders=");
  append_header_names(out, request);
  out.append(",Signature=").append(signature(request, date));
  return out;
}

Sha256 Signer::key_of(std::string_view day) const {
  const MutexLock lock(mutex_);
  if (day_ != day) {
    key_ = signing_key(credentials_.secret_access_key, day, region_, service_);
    day_ = day;
  }
  return key_;
}

}  // namespace leat
