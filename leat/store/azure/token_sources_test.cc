#include "leat/store/azure/token_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/cloud/testing/link_world.h"

namespace leat {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LinkWorld;
using ::testing::Not;
using testing::Variables;

constexpr std::string_view kToken =
    R"({"access_token":"PLANTEDTOKEN","expires_in":"3599"})";

class AzureTokenTest : public ::testing::Test {
 protected:
  Result<CredentialAnswer> ask(const Variables& variables) {
    LEAT_TRY(const std::shared_ptr<CredentialProvider> source,
             find_azure_token_source(world_.tools(variables)));
    return source->fetch({});
  }

  LinkWorld world_;
  HttpScript& script_ = world_.script;
};

TEST_F(AzureTokenTest, AnApplicationShowsItsSecret) {
  const Variables application = {{"AZURE_TENANT_ID", "t-1"},
                                 {"AZURE_CLIENT_ID", "c-1"},
                                 {"AZURE_CLIENT_SECRET", "PLANTEDSECRET"}};
  script_.answer(200, std::string(kToken));
  script_.answer(401, R"({"error":"invalid_client","error_description":)"
                      R"("not PLANTEDSECRET"})");

  const auto answer = ask(application);
  const auto refused = ask(application);

  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->found->keys.bearer_token, "PLANTEDTOKEN");
  EXPECT_EQ(world_.left(*answer->found), 3599s);
  EXPECT_EQ(script_.asked.at(0).url,
            "https://login.microsoftonline.com/t-1/oauth2/v2.0/token");
  EXPECT_EQ(script_.bodies.at(0),
            "client_id=c-1&client_secret=PLANTEDSECRET&"
            "grant_type=client_credentials&"
            "scope=https%3A%2F%2Fstorage.azure.com%2F.default");
  EXPECT_THAT(refused.error().message(),
              AllOf(HasSubstr("invalid_client"), Not(HasSubstr("PLANTED"))));
}

TEST_F(AzureTokenTest, AWorkloadShowsTheTokenOfItsFile) {
  const std::string file = world_.write("token", "PLANTEDJWT\n");
  const Variables workload = {{"AZURE_TENANT_ID", "t"},
                              {"AZURE_CLIENT_ID", "c"},
                              {"AZURE_FEDERATED_TOKEN_FILE", file},
                              {"AZURE_AUTHORITY_HOST", "https://login.cn/"}};
  script_.answer(200, std::string(kToken));

  ASSERT_TRUE(ask(workload));

  EXPECT_EQ(script_.asked.at(0).url, "https://login.cn/t/oauth2/v2.0/token");
  EXPECT_THAT(script_.bodies.at(0), HasSubstr("client_assertion=PLANTEDJWT&"));
  world_.write("token", "");
  EXPECT_THAT(ask(workload).error().message(), HasSubstr("empty"));
}

TEST_F(AzureTokenTest, AMachineAsksItsMetadataService) {
  script_.answer(200, std::string(kToken));

  const auto answer = ask({{"AZURE_CLIENT_ID", "c"}});

  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(script_.asked.at(0).url,
            "http://169.254.169.254/metadata/identity/oauth2/token?"
            "api-version=2018-02-01&client_id=c&"
            "resource=https%3A%2F%2Fstorage.azure.com%2F");
  EXPECT_EQ(HttpScript::header(script_.asked.at(0), "Metadata"), "true");
  EXPECT_FALSE(world_.opened.at(0).may_use_proxy);
}

TEST_F(AzureTokenTest, SaysWhatToSetWhereThereIsNothing) {
  for (int i = 0; i < 3; ++i) {
    script_.replies.emplace_back(Error(ErrorCode::kUnavailable, "nobody"));
  }

  const auto answer = ask({});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(answer.error().message(),
              AllOf(HasSubstr("AZURE_STORAGE_CONNECTION_STRING"),
                    HasSubstr("no_sign_request")));
}

TEST_F(AzureTokenTest, SendsSecretsOverHttpsOnly) {
  EXPECT_THAT(ask({{"AZURE_TENANT_ID", "t"},
                   {"AZURE_CLIENT_ID", "c"},
                   {"AZURE_CLIENT_SECRET", "s"},
                   {"AZURE_AUTHORITY_HOST", "http://evil.org"}})
                  .error()
                  .message(),
              HasSubstr("AZURE_AUTHORITY_HOST"));
  EXPECT_FALSE(ask({{"AZURE_TENANT_ID", "t/../x?"},
                    {"AZURE_CLIENT_ID", "c"},
                    {"AZURE_CLIENT_SECRET", "s"}}));
  EXPECT_TRUE(script_.asked.empty());
}

}  // namespace
}  // namespace leat
