#include "leat/store/azure/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/cloud/testing/link_world.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LinkWorld;
using ::testing::Not;
using testing::Variables;

class AzureSettingsTest : public ::testing::Test {
 protected:
  Result<AzureSettings> resolve(const Variables& variables,
                                const AzurePlace& place = {"ds", ""},
                                const AzureOptions& options = {}) {
    return resolve_azure_settings(place, options, world_.tools(variables));
  }

  LinkWorld world_;
};

TEST_F(AzureSettingsTest, FindsTheAccountAndItsKey) {
  const auto named = resolve({{"AZURE_STORAGE_ACCOUNT_NAME", "acc"},
                              {"AZURE_STORAGE_ACCOUNT_KEY", "a2V5"}});
  ASSERT_TRUE(named) << named.error().message();
  EXPECT_EQ(named->endpoint.url(), "https://acc.blob.core.windows.net");
  EXPECT_EQ(named->credentials->access_key_id, "acc");
  EXPECT_EQ(named->credentials->secret_access_key, "key");
  EXPECT_FALSE(named->provider);

  const auto of_cli = resolve(
      {{"AZURE_STORAGE_ACCOUNT", "acc"}, {"AZURE_STORAGE_KEY", "a2V5"}});
  ASSERT_TRUE(of_cli);
  EXPECT_EQ(of_cli->credentials->secret_access_key, "key");
}

TEST_F(AzureSettingsTest, ReadsConnectionStrings) {
  const auto cloud = resolve(
      {{"AZURE_STORAGE_CONNECTION_STRING",
        "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5PT0=;"
        "EndpointSuffix=core.chinacloudapi.cn"}});
  ASSERT_TRUE(cloud) << cloud.error().message();
  EXPECT_EQ(cloud->endpoint.url(), "https://acc.blob.core.chinacloudapi.cn");
  EXPECT_EQ(cloud->credentials->secret_access_key, "key==");

  const auto sas = resolve({{"AZURE_STORAGE_CONNECTION_STRING",
                             "BlobEndpoint=https://host/x/;"
                             "SharedAccessSignature=?sv=1&sig=s%3D"}});
  ASSERT_TRUE(sas);
  EXPECT_EQ(sas->endpoint.url(), "https://host/x");
  EXPECT_EQ(sas->credentials->session_token, "sv=1&sig=s%3D");

  const auto azurite = resolve(
      {{"AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true"}});
  ASSERT_TRUE(azurite);
  EXPECT_EQ(azurite->endpoint.url(), "http://127.0.0.1:10000/devstoreaccount1");
  EXPECT_EQ(azurite->credentials->access_key_id, "devstoreaccount1");
}

TEST_F(AzureSettingsTest, TakesTheAccountThatTheUrlNames) {
  const AzurePlace place{"ds", "Acc.dfs.core.windows.net"};
  EXPECT_EQ(resolve({}, place)->endpoint.url(),
            "https://acc.blob.core.windows.net");
  EXPECT_TRUE(resolve({}, place)->provider) << "the managed identity";
  EXPECT_TRUE(resolve({{"AZURE_STORAGE_ACCOUNT_NAME", "acc"},
                       {"AZURE_STORAGE_ACCOUNT_KEY", "a2V5"}},
                      place)
                  ->credentials);

  const auto of_another = resolve({{"AZURE_STORAGE_ACCOUNT_NAME", "other"},
                                   {"AZURE_STORAGE_ACCOUNT_KEY", "a2V5"}},
                                  place);
  ASSERT_FALSE(of_another) << "one account's key goes to no other";
  EXPECT_THAT(of_another.error().message(),
              AllOf(HasSubstr("account acc"), HasSubstr("of other")));
  EXPECT_FALSE(resolve({}, {"ds", "acc.example.org"}));
}

TEST_F(AzureSettingsTest, GoesWithCredentialsToAzuresOwnDomains) {
  struct Row {
    std::string host, endpoint;
  };
  for (const Row& row :
       {Row{"acc.dfs.core.chinacloudapi.cn",
            "https://acc.blob.core.chinacloudapi.cn"},
        Row{"acc.dfs.core.usgovcloudapi.net",
            "https://acc.blob.core.usgovcloudapi.net"},
        Row{"acc.dfs.core.cloudapi.de", "https://acc.blob.core.cloudapi.de"},
        Row{"acc.z07.dfs.storage.azure.net",
            "https://acc.z07.blob.storage.azure.net"},
        Row{"onelake.dfs.fabric.microsoft.com",
            "https://onelake.blob.fabric.microsoft.com"}}) {
    const auto found =
        resolve({{"AZURE_STORAGE_SAS_TOKEN", "sig=s"}}, {"ds", row.host});
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(found->endpoint.url(), row.endpoint);
  }
  const auto zoned = resolve({{"AZURE_STORAGE_ACCOUNT_NAME", "acc"},
                              {"AZURE_STORAGE_ACCOUNT_KEY", "a2V5"}},
                             {"ds", "acc.z07.dfs.storage.azure.net"});
  ASSERT_TRUE(zoned) << zoned.error().message();
  EXPECT_EQ(zoned->credentials->access_key_id, "acc") << "without its zone";
}

TEST_F(AzureSettingsTest, SendsNothingToAHostThatNobodyButAUrlNames) {
  const Variables with_sas = {{"AZURE_STORAGE_SAS_TOKEN", "sig=PLANTED"}};
  for (const char* host :
       {"acc.dfs.evil.org", "acc.dfs.core.windows.net.evil.org",
        "acc.dfs.evil.org.dfs.core.windows.net", "acc.dfs.core.windows.net:444",
        "acc.dfs.storage.azure.net", "acc.zx.dfs.storage.azure.net",
        "acc.dfs.windows.net"}) {
    for (const Variables& variables :
         {with_sas, Variables{},
          Variables{{"AZURE_STORAGE_ACCOUNT_NAME", "acc"},
                    {"AZURE_STORAGE_ACCOUNT_KEY", "a2V5"}}}) {
      const auto found = resolve(variables, {"ds", host});
      ASSERT_FALSE(found) << host << " " << found->endpoint.url();
      EXPECT_EQ(found.error().code(), ErrorCode::kInvalidArgument);
    }
  }
  EXPECT_THAT(
      resolve(with_sas, {"ds", "acc.dfs.evil.org"}).error().message(),
      AllOf(HasSubstr("acc.dfs.evil.org is not in a domain of Azure"),
            HasSubstr("endpoint_url"), HasSubstr("EndpointSuffix=evil.org"),
            Not(HasSubstr("PLANTED"))));
}

TEST_F(AzureSettingsTest, GoesToAnotherDomainThatTheUserNames) {
  const AzurePlace place{"ds", "acc.dfs.stack.corp"};
  const Variables with_sas = {{"AZURE_STORAGE_SAS_TOKEN", "sig=s"}};

  const auto by_option =
      resolve(with_sas, place, {.endpoint_url = "https://blob.corp"});
  const auto by_suffix =
      resolve({{"AZURE_STORAGE_CONNECTION_STRING",
                "AccountName=acc;AccountKey=a2V5;EndpointSuffix=stack.corp"}},
              place);

  ASSERT_TRUE(by_option) << by_option.error().message();
  EXPECT_EQ(by_option->endpoint.url(), "https://blob.corp");
  ASSERT_TRUE(by_suffix) << by_suffix.error().message();
  EXPECT_EQ(by_suffix->endpoint.url(), "https://acc.blob.stack.corp");
  EXPECT_TRUE(by_suffix->credentials);
}

TEST_F(AzureSettingsTest, AsksAsNobodyWhereToldSo) {
  const auto settings = resolve({{"AZURE_STORAGE_ACCOUNT_NAME", "acc"},
                                 {"AZURE_STORAGE_ACCOUNT_KEY", "a2V5"}},
                                {"ds", ""}, {.no_sign_request = true});
  ASSERT_TRUE(settings);
  EXPECT_FALSE(settings->credentials);
  EXPECT_FALSE(settings->provider);
}

TEST_F(AzureSettingsTest, RefusesWhatCannotBeAndShowsNoSecret) {
  struct Row {
    Variables variables;
    std::string_view says;
  };
  const Row rows[] = {
      {{}, "AZURE_STORAGE_ACCOUNT_NAME"},
      {{{"AZURE_STORAGE_ACCOUNT_NAME", "acc"},
        {"AZURE_STORAGE_ACCOUNT_KEY", "PLANTED!"}},
       "not base64"},
      {{{"AZURE_STORAGE_CONNECTION_STRING", "AccountKey=PLANTED="}},
       "AZURE_STORAGE_ACCOUNT_NAME"},
      {{{"AZURE_STORAGE_ACCOUNT_NAME", "acc"},
        {"AZURE_STORAGE_SAS_TOKEN", "sig=PLANTED\r\nX: y"}},
       "SAS"},
      {{{"AZURE_STORAGE_ACCOUNT_NAME", "acc@evil.org/"},
        {"AZURE_STORAGE_SAS_TOKEN", "sig=PLANTED"}},
       "AZURE_STORAGE_ACCOUNT_NAME"},
      {{{"AZURE_STORAGE_ACCOUNT_NAME", "acc"},
        {"AZURE_CLIENT_SECRET", "PLANTED"}},
       "AZURE_TENANT_ID"},
  };
  for (const Row& row : rows) {
    const auto settings = resolve(row.variables);
    ASSERT_FALSE(settings) << row.says;
    EXPECT_EQ(settings.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(settings.error().message(),
                AllOf(HasSubstr(row.says), Not(HasSubstr("PLANTED"))));
  }
  for (const char* container : {"", "a/b", "a.b", "x?y", "a\r\nb"}) {
    EXPECT_FALSE(
        resolve({{"AZURE_STORAGE_ACCOUNT_NAME", "acc"}}, {container, ""}))
        << container;
  }
  EXPECT_THAT(resolve({{"AZURE_STORAGE_ACCOUNT_NAME", "acc"}}, {"ds", ""},
                      {.endpoint_url = "http://host"})
                  .error()
                  .message(),
              HasSubstr("https"))
      << "a token is sent to nobody in the clear";
}

}  // namespace
}  // namespace leat
