#include "leat/store/gcs/token_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <nlohmann/json.hpp>

#include "leat/store/cloud/digest.h"
#include "leat/store/cloud/testing/link_world.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/testing/http_server.h"

namespace leat {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LinkWorld;
using ::testing::Not;
using testing::ScriptedServer;
using testing::ServerReply;
using testing::ServerRequest;
using testing::Variables;

constexpr std::string_view kToken =
    R"({"access_token":"PLANTEDTOKEN","expires_in":3599,)"
    R"("token_type":"Bearer"})";
const auto kNoon =
    std::chrono::sys_days(std::chrono::year(2024) / 2 / 29) + 12h;

/// The value of a form's field.
std::string field(std::string_view form, const std::string& name) {
  const std::size_t at = ("&" + std::string(form)).find("&" + name + "=");
  if (at == std::string::npos) return "(none)";
  const std::string_view rest = form.substr(at + name.size() + 1);
  return uri_decode(rest.substr(0, rest.find('&')));
}

/// A new RSA key, and the check of what it signs.
class TestKey {
 public:
  TestKey() : key_(EVP_RSA_gen(2048)) {}
  ~TestKey() { EVP_PKEY_free(key_); }

  std::string pem() const {
    BIO* const out = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(out, key_, nullptr, nullptr, 0, nullptr, nullptr);
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(out, &bytes);
    std::string text(bytes, static_cast<std::size_t>(size));
    BIO_free(out);
    return text;
  }
  bool has_signed(std::string_view text, std::string_view signature) const {
    EVP_MD_CTX* const context = EVP_MD_CTX_new();
    const bool is_right =
        EVP_DigestVerifyInit(context, nullptr, EVP_sha256(), nullptr, key_) ==
            1 &&
        EVP_DigestVerify(
            context, reinterpret_cast<const unsigned char*>(signature.data()),
            signature.size(),
            reinterpret_cast<const unsigned char*>(text.data()),
            text.size()) == 1;
    EVP_MD_CTX_free(context);
    return is_right;
  }

 private:
  EVP_PKEY* key_;
};

/// The bytes of a part of a JWT.
std::string decoded(std::string part) {
  for (char& c : part) c = c == '-' ? '+' : c == '_' ? '/' : c;
  part.append((4 - part.size() % 4) % 4, '=');
  return base64_decode(part).value_or("(none)");
}

class TokenSourcesTest : public ::testing::Test {
 protected:
  Result<CredentialAnswer> ask(const Variables& variables) {
    LEAT_TRY(const TokenSource source,
             find_token_source(world_.tools(variables)));
    return source.provider->fetch({});
  }
  Result<CredentialAnswer> ask_with(std::string_view file) {
    return ask(
        {{"GOOGLE_APPLICATION_CREDENTIALS", world_.write("key.json", file)}});
  }
  std::string service_account(const std::string& pem) {
    return nlohmann::json({{"type", "service_account"},
                           {"client_email", "me@p.iam"},
                           {"private_key_id", "K1"},
                           {"private_key", pem},
                           {"project_id", "p"}})
        .dump();
  }

  LinkWorld world_;
  HttpScript& script_ = world_.script;
};

TEST_F(TokenSourcesTest, AServiceAccountSignsWhatItAsksWith) {
  const TestKey key;
  script_.answer(200, std::string(kToken));

  const auto answer = ask_with(service_account(key.pem()));

  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->found->keys.bearer_token, "PLANTEDTOKEN");
  EXPECT_EQ(world_.left(*answer->found), 3599s);
  EXPECT_EQ(script_.asked.at(0).url, "https://oauth2.googleapis.com/token");
  const std::string& form = script_.bodies.at(0);
  EXPECT_EQ(field(form, "grant_type"),
            "urn:ietf:params:oauth:grant-type:jwt-bearer");
  const std::string jwt = field(form, "assertion");
  const std::size_t dot = jwt.find('.');
  const std::size_t end = jwt.rfind('.');
  EXPECT_EQ(nlohmann::json::parse(decoded(jwt.substr(0, dot))),
            nlohmann::json({{"alg", "RS256"}, {"typ", "JWT"}, {"kid", "K1"}}));
  const auto claims =
      nlohmann::json::parse(decoded(jwt.substr(dot + 1, end - dot - 1)));
  EXPECT_EQ(claims.at("iss"), "me@p.iam");
  EXPECT_EQ(claims.at("aud"), "https://oauth2.googleapis.com/token");
  EXPECT_EQ(claims.at("iat"), kNoon.time_since_epoch() / 1s);
  EXPECT_EQ(claims.at("exp"), kNoon.time_since_epoch() / 1s + 3600);
  EXPECT_TRUE(key.has_signed(jwt.substr(0, end), decoded(jwt.substr(end + 1))));
}

TEST_F(TokenSourcesTest, AServiceAccountGoesByTheServersTimeWhereOursIsWrong) {
  const TestKey key;
  script_.answer(400, R"({"error":"invalid_grant"})",
                 {{"date", "Thu, 29 Feb 2024 12:20:00 GMT"}});
  script_.answer(200, std::string(kToken));

  const auto answer = ask_with(service_account(key.pem()));

  ASSERT_TRUE(answer) << answer.error().message();
  const std::string jwt = field(script_.bodies.at(1), "assertion");
  EXPECT_THAT(
      decoded(
          jwt.substr(jwt.find('.') + 1, jwt.rfind('.') - jwt.find('.') - 1)),
      HasSubstr(std::to_string((kNoon + 20min).time_since_epoch() / 1s)));
}

TEST_F(TokenSourcesTest, AServiceAccountsStatementIsShownToNobody) {
  const TestKey key;
  ScriptedServer server([](const ServerRequest& request) {
    return ServerReply{
        .status = 400,
        .body = nlohmann::json(
                    {{"error", "invalid_grant"},
                     {"error_description", field(request.body, "assertion")}})
                    .dump()};
  });
  auto file = nlohmann::json::parse(service_account(key.pem()));
  file["token_uri"] = server.url("/token");
  CredentialTools tools =
      world_.tools({{"GOOGLE_APPLICATION_CREDENTIALS",
                     world_.write("key.json", file.dump())}});
  tools.open_http = CredentialTools{.env = tools.env}.open_http;

  const auto source = find_token_source(tools);
  ASSERT_TRUE(source) << source.error().message();
  const auto refused = source->provider->fetch({});

  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
              AllOf(HasSubstr("invalid_grant"), HasSubstr("(hidden)"),
                    Not(HasSubstr("eyJ"))))
      << "the base64 of JSON begins so";
}

TEST_F(TokenSourcesTest, AServiceAccountBelievesNoTimeThatNoClockShows) {
  const TestKey key;
  script_.answer(400, R"({"error":"invalid_grant"})",
                 {{"date", "Fri, 31 Dec 9999 23:59:60 GMT"}});

  const auto refused = ask_with(service_account(key.pem()));

  EXPECT_EQ(refused.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(script_.asked.size(), 1u);
}

TEST_F(TokenSourcesTest, AUserRefreshes) {
  script_.answer(200, std::string(kToken));
  world_.write(
      ".config/gcloud/application_default_credentials.json",
      R"({"type":"authorized_user","client_id":"ID","client_secret":"HUSH",)"
      R"("refresh_token":"PLANTEDREFRESH"})");

  const auto answer = ask({});

  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(field(script_.bodies.at(0), "grant_type"), "refresh_token");
  EXPECT_EQ(field(script_.bodies.at(0), "refresh_token"), "PLANTEDREFRESH");

  script_.answer(400, R"({"error":"invalid_grant","error_description":)"
                      R"("PLANTEDREFRESH of HUSH has expired"})");
  const auto refused = ask({});
  EXPECT_EQ(refused.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(refused.error().message(),
              AllOf(HasSubstr("invalid_grant"), HasSubstr("gcloud auth"),
                    Not(HasSubstr("PLANTED")), Not(HasSubstr("HUSH"))));
}

std::string external(std::string_view source, std::string_view more = "") {
  return R"({"type":"external_account","audience":"//iam/pool",)"
         R"("subject_token_type":"urn:ietf:params:oauth:token-type:jwt",)"
         R"("token_url":"https://sts.googleapis.com/v1/token",)"
         R"("credential_source":)" +
         std::string(source) + std::string(more) + "}";
}

TEST_F(TokenSourcesTest, AFederatedIdentityExchangesTheTokenOfAFile) {
  const std::string file = world_.write("token", "PLANTEDSUBJECT\n");
  script_.answer(200, std::string(kToken));

  const auto answer = ask_with(external(R"({"file":")" + file + R"("})"));

  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->found->keys.bearer_token, "PLANTEDTOKEN");
  EXPECT_EQ(field(script_.bodies.at(0), "subject_token"), "PLANTEDSUBJECT");
  EXPECT_EQ(field(script_.bodies.at(0), "audience"), "//iam/pool");

  script_.answer(403, R"({"error":"denied","error_description":)"
                      R"("not PLANTEDSUBJECT"})");
  EXPECT_THAT(
      ask_with(external(R"({"file":")" + file + R"("})")).error().message(),
      Not(HasSubstr("PLANTED")));
}

TEST_F(TokenSourcesTest, AFederatedIdentityOfAUrlBecomesAServiceAccount) {
  script_.answer(200, R"({"t":"PLANTEDSUBJECT"})");
  script_.answer(200, std::string(kToken));
  script_.answer(200, R"({"accessToken":"PLANTEDSECOND",)"
                      R"("expireTime":"2024-02-29T12:30:00Z"})");

  const auto answer = ask_with(external(
      R"({"url":"http://169.254.1.1/id","headers":{"Metadata":"True"},)"
      R"("format":{"type":"json","subject_token_field_name":"t"}})",
      R"(,"service_account_impersonation_url":"https://iam/sa:generate")"));

  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->found->keys.bearer_token, "PLANTEDSECOND");
  EXPECT_EQ(world_.left(*answer->found), 30min);
  EXPECT_EQ(HttpScript::header(script_.asked.at(0), "Metadata"), "True");
  EXPECT_FALSE(world_.opened.at(0).may_use_proxy);
  EXPECT_EQ(script_.asked.at(2).url, "https://iam/sa:generate");
  EXPECT_EQ(HttpScript::header(script_.asked.at(2), "Authorization"),
            "Bearer PLANTEDTOKEN");
}

TEST_F(TokenSourcesTest, AMachineAsksItsMetadataServer) {
  script_.answer(200, std::string(kToken), {{"metadata-flavor", "Google"}});

  const auto answer = ask({{"GCE_METADATA_HOST", "10.0.0.1:80"}});

  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->found->keys.bearer_token, "PLANTEDTOKEN");
  EXPECT_EQ(script_.asked.at(0).url,
            "http://10.0.0.1:80/computeMetadata/v1/instance/service-accounts/"
            "default/token");
  EXPECT_EQ(HttpScript::header(script_.asked.at(0), "Metadata-Flavor"),
            "Google");
  EXPECT_FALSE(world_.opened.at(0).may_use_proxy);
}

TEST_F(TokenSourcesTest, SaysWhereItLookedWhereThereIsNothing) {
  script_.answer(200, "<html>welcome</html>");

  const auto answer = ask({});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(answer.error().message(),
              AllOf(HasSubstr("GOOGLE_APPLICATION_CREDENTIALS is not set"),
                    HasSubstr("application_default_credentials.json"),
                    HasSubstr("metadata.google.internal"),
                    HasSubstr("no_sign_request")));
  EXPECT_THAT(ask({{"NO_GCE_CHECK", "true"}}).error().message(),
              HasSubstr("NO_GCE_CHECK"));
}

TEST_F(TokenSourcesTest, RefusesFilesThatAreNoCredentialsAndShowsNoneOfThem) {
  struct Row {
    std::string file, says;
  };
  const Row rows[] = {
      {"PLANTED", "no JSON"},
      {R"({"type":"gdch_service_account","k":"PLANTED"})", "gdch"},
      {R"({"type":"service_account","private_key":"PLANTED"})", "client_email"},
      {service_account("PLANTED"), "no RSA key"},
      {R"({"type":"authorized_user","client_id":"i","client_secret":)"
       R"("PLANTED","refresh_token":"r","token_uri":"http://evil.org/t"})",
       "token_uri is no https URL"},
      {external(R"({"environment_id":"aws1"})"), "credential_source"},
      {external(R"({"url":"http://x","headers":{"A":"PLANTED\r\nB: c"}})"),
       "header"},
  };
  for (const Row& row : rows) {
    const auto answer = ask_with(row.file);
    ASSERT_FALSE(answer) << row.says;
    EXPECT_THAT(answer.error().message(),
                AllOf(HasSubstr(row.says), HasSubstr("key.json"),
                      Not(HasSubstr("PLANTED"))));
  }
  EXPECT_TRUE(script_.asked.empty());
  EXPECT_THAT(
      ask({{"GOOGLE_APPLICATION_CREDENTIALS", "/none"}}).error().message(),
      HasSubstr("/none is not there"));
}

}  // namespace
}  // namespace leat
