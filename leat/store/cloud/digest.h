// SHA-256, its HMAC, and the ways in which digests are written.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

using Sha256 = std::array<unsigned char, 32>;
Sha256 sha256(std::string_view bytes);
Sha256 hmac_sha256(std::string_view key, std::string_view message);
std::string_view as_view(const Sha256& digest);
/// Lower-case hexadecimal digits.
std::string hex(const Sha256& digest);
void append_hex(std::string& out, const Sha256& digest);
std::string sha256_hex(std::string_view bytes);

/// With '+', '/' and padding (RFC 4648, 4).
std::string base64(std::string_view bytes);
/// With '-' and '_', without padding (RFC 4648, 5), as in tokens.
std::string base64_url(std::string_view bytes);
/// Undoes base64(); nullopt for anything else.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace leat
