// Any answer of a service that gives temporary credentials: JSON of processes,
// containers and instances, XML of STS. Keys from it can go into a header, and
// no error holds the secret that was sent.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "leat/store/cloud/testing/fake_http.h"
#include "leat/store/s3/credentials/json_reply.h"
#include "leat/store/s3/credentials/static_keys.h"
#include "leat/store/s3/credentials/sts.h"

namespace {

using leat::Result;
using leat::TimedCredentials;

constexpr std::string_view kSecret = "open-sesame";

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const Result<TimedCredentials>& made) {
  if (!made) {
    require(made.error().message().find(kSecret) == std::string::npos);
    return;
  }
  const leat::Credentials& keys = made->keys;
  require(!keys.access_key_id.empty() && !keys.secret_access_key.empty());
  require(leat::is_header_word(keys.access_key_id));
  require(leat::is_header_word(keys.secret_access_key));
  require(keys.session_token.empty() ||
          leat::is_header_word(keys.session_token));
}

leat::CredentialTools tools_of(leat::HttpScript& script) {
  leat::CredentialTools tools;
  tools.env = [](std::string_view) { return std::optional<std::string>(); };
  tools.open_http = [&script](const leat::HttpClientOptions&) {
    return std::make_unique<leat::FakeHttp>(script);
  };
  return tools;
}

void read_json(std::string_view text, std::string_view date) {
  static constexpr std::array<leat::JsonForm, 3> kForms = {
      leat::JsonForm{},
      leat::JsonForm{"SessionToken", /*needs_expiration=*/false, true},
      leat::JsonForm{"Token", /*needs_expiration=*/false, false}};
  leat::HttpScript script;
  const std::array secrets = {kSecret};
  for (const leat::JsonForm& form : kForms) {
    check(leat::parse_json_credentials(text, form, date, secrets,
                                       tools_of(script)));
  }
  require(leat::json_refusal(text, secrets).find(kSecret) == std::string::npos);
}

/// 5xx would be asked again after a pause.
void read_xml(std::string_view text, std::string_view date) {
  for (const int status : {200, 400, 403}) {
    leat::HttpScript script;
    script.answer(status, std::string(text), {{"date", date}});
    check(leat::assume_role_with_web_identity(
        {.role_arn = "arn:aws:iam::1:role/r"}, kSecret,
        {.endpoint = {"https", "sts.example", ""}, .region = "us-east-1"},
        tools_of(script), {}));
    require(script.asked.size() == 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // The first line is the Date header.
  const std::size_t line = input.substr(0, 64).find('\n');
  const bool has_date = line != std::string_view::npos;
  const std::string_view date = has_date ? input.substr(0, line) : "";
  const std::string_view text = has_date ? input.substr(line + 1) : input;
  read_json(text, date);
  read_xml(text, date);
  return 0;
}
