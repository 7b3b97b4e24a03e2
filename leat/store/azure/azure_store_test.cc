// The driver against a server of the Blob service: a fake one, or the Azurite
// that LEAT_TEST_AZURITE names ("http://127.0.0.1:10000").

#include "leat/store/azure/azure_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>

#include "leat/store/azure/shared_key.h"
#include "leat/store/azure/testing/fake_azure.h"
#include "leat/store/cloud/testing/fake_http.h"
#include "leat/store/cloud/testing/link_world.h"
#include "leat/store/testing/conformance.h"

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const WallTime kNow = std::chrono::sys_days(std::chrono::year(2024) / 2 / 29) +
                      std::chrono::hours(12);

std::shared_ptr<Store> on_azurite(const std::string& url,
                                  const Objects& objects) {
  static int container = 0;
  const std::string name = "conformance-" + std::to_string(::getpid()) + "-" +
                           std::to_string(container++);
  LinkWorld world;
  AzureSettings settings = *resolve_azure_settings(
      {.container = name, .host = ""},
      {.endpoint_url = url + "/devstoreaccount1"},
      world.tools(
          {{"AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true"}}));
  auto http = open_http_client({}, nullptr);
  HttpRequest make;
  make.method = "PUT";
  make.url = settings.endpoint.url() + "/" + name + "?restype=container";
  make.headers = {
      "x-ms-version: 2021-08-06",
      "x-ms-date: " + http_date(system_now().time_since_epoch().count())};
  sign_with_shared_key(*settings.credentials, make);
  const auto made = http->send_and_wait(make, {});
  EXPECT_TRUE(made && made->status == 201);
  std::shared_ptr<Store> store = open_azure_store(
      name, "az://" + name, std::move(settings), std::move(http));
  for (const auto& [key, bytes] : objects) {
    const auto written = store->write(key, leat::as_bytes(bytes), {});
    EXPECT_TRUE(written) << written.error().message();
  }
  return store;
}

std::shared_ptr<Store> conforming_store(const Objects& objects) {
  if (const char* azurite = std::getenv("LEAT_TEST_AZURITE")) {
    return on_azurite(azurite, objects);
  }
  auto server = std::make_shared<FakeAzure>(objects);
  AzureSettings settings;
  settings.endpoint = *parse_endpoint({server->url(), "a test"});
  settings.credentials = Credentials{"", "", FakeAzure::kSas};
  auto store = open_azure_store("ds", "az://ds", std::move(settings),
                                open_http_client({}, nullptr));
  return owning(std::move(server), std::move(store));
}

}  // namespace

// Azurite makes slashes of the backslashes in names.
INSTANTIATE_TEST_SUITE_P(
    Azure, StoreConformanceTest,
    conforming({.open = &conforming_store,
                .takes_odd_keys = std::getenv("LEAT_TEST_AZURITE") ==
                                  nullptr}));

class AzureStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> open(std::optional<Credentials> who) {
    AzureSettings settings;
    settings.endpoint =
        *parse_endpoint({"https://acc.blob.core.windows.net", "a test"});
    settings.credentials = std::move(who);
    return open_azure_store("ds", "az://ds", std::move(settings),
                            std::make_unique<FakeHttp>(script_),
                            [] { return kNow; });
  }
  Result<void> read(Store& store, std::string etag = {}) {
    return four_.read(store, std::move(etag));
  }
  static std::string empty_page(const std::string& marker) {
    return "<EnumerationResults><NextMarker>" + marker +
           "</NextMarker></EnumerationResults>";
  }

  HttpScript script_;
  FourBytes four_;
};

TEST_F(AzureStoreTest, SignsWithTheAccountsKey) {
  const auto store = open(Credentials{"acc", "PLANTEDKEY", ""});
  script_.answer(206, "abcd",
                 {{"content-range", "bytes 10-13/99"}, {"etag", "\"0x1\""}});

  ASSERT_TRUE(read(*store, "\"0x1\""));

  EXPECT_EQ(four_.got, "abcd");
  HttpRequest request = script_.asked.at(0);
  EXPECT_EQ(request.attempt, 3u) << "a later try bears a slower server";
  EXPECT_EQ(request.url, "https://acc.blob.core.windows.net/ds/a%20b/c");
  EXPECT_THAT(HttpScript::header(request, "Authorization"),
              HasSubstr("SharedKey acc:"));
  request.headers.pop_back();
  EXPECT_EQ(shared_key_string_to_sign("acc", request),
            "GET\n\n\n\n\n\n\n\n\"0x1\"\n\n\nbytes=10-13\n"
            "x-ms-date:Thu, 29 Feb 2024 12:00:00 GMT\n"
            "x-ms-version:2021-08-06\n"
            "/acc/ds/a%20b/c");
}

TEST_F(AzureStoreTest, SignsQueriesInOrderAndDecoded) {
  const auto store = open(Credentials{"acc", "PLANTEDKEY", ""});
  script_.answer(200, "<EnumerationResults/>");

  ASSERT_TRUE(store->list({.prefix = "a b/"}, {}));

  EXPECT_THAT(
      shared_key_string_to_sign("acc", script_.asked.at(0)),
      HasSubstr("\n/acc/ds\ncomp:list\nprefix:a b/\nrestype:container"));
}

TEST_F(AzureStoreTest, ShowsItsSasToTheServiceAlone) {
  const auto store = open(Credentials{"", "", "sig=PLANTEDSAS"});
  script_.answer(403,
                 "<Error><Code>AuthenticationFailed</Code>"
                 "<Message>sig=PLANTEDSAS</Message></Error>");
  script_.answer(200, "<EnumerationResults/>");

  const auto refused = read(*store);
  ASSERT_TRUE(store->list({}, {}));

  EXPECT_EQ(script_.asked.at(0).url,
            "https://acc.blob.core.windows.net/ds/a%20b/c?sig=PLANTEDSAS");
  EXPECT_EQ(script_.asked.at(1).url,
            "https://acc.blob.core.windows.net/ds?comp=list&"
            "restype=container&sig=PLANTEDSAS");
  EXPECT_EQ(refused.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(
      refused.error().message(),
      AllOf(HasSubstr("az://ds/a b/c"), HasSubstr("AuthenticationFailed"),
            Not(HasSubstr("PLANTED"))));
}

TEST_F(AzureStoreTest, GoesByTheServersTimeOnceItsOwnIsRefused) {
  const auto store = open(Credentials{"acc", "PLANTEDKEY", ""});
  const ReplyHeaders later = {{"date", "Thu, 29 Feb 2024 12:20:00 GMT"},
                              {"x-ms-error-code", "AuthenticationFailed"}};
  script_.answer(403, "", later);
  script_.answer(403, "", later);

  EXPECT_EQ(read(*store).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(read(*store).error().code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(HttpScript::header(script_.asked.at(1), "x-ms-date"),
            "Thu, 29 Feb 2024 12:20:00 GMT");
}

TEST_F(AzureStoreTest, AllThatWereUnderWayGoAgainOnceOneReplyTellsTheTime) {
  const auto store = open(Credentials{"acc", "PLANTEDKEY", ""});
  std::vector<HttpDone> held;
  script_.hold = [&](HttpDone done) { held.push_back(std::move(done)); };
  std::vector<ErrorCode> codes;
  std::array<std::byte, 4> into{};
  for (int i = 0; i < 3; ++i) {
    store->read({.object = {.key = "k"}, .into = into}, {},
                [&](const Result<void>& result) {
                  codes.push_back(result.error().code());
                });
  }

  for (const HttpDone& done : held) {
    done(HttpReply{403,
                   {{"date", "Thu, 29 Feb 2024 12:20:00 GMT"},
                    {"x-ms-error-code", "AuthenticationFailed"}},
                   ""});
  }

  EXPECT_THAT(codes, ::testing::ElementsAre(ErrorCode::kUnavailable,
                                            ErrorCode::kUnavailable,
                                            ErrorCode::kUnavailable));
}

TEST_F(AzureStoreTest, GoesByNoTimeThatNoClockShows) {
  const auto store = open(Credentials{"acc", "PLANTEDKEY", ""});
  for (int i = 0; i < 2; ++i) {
    script_.answer(403, "",
                   {{"date", "Fri, 31 Dec 9999 23:59:60 GMT"},
                    {"x-ms-error-code", "AuthenticationFailed"}});
  }

  EXPECT_EQ(read(*store).error().code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(read(*store).error().code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(HttpScript::header(script_.asked.at(1), "x-ms-date"),
            "Thu, 29 Feb 2024 12:00:00 GMT");
}

TEST_F(AzureStoreTest, NoticesAnotherVersionThatTheServerDidNotCheck) {
  const auto store = open(std::nullopt);
  script_.answer(206, "abcd",
                 {{"content-range", "bytes 10-13/99"}, {"etag", "\"0x2\""}});

  const auto changed = read(*store, "\"0x1\"");

  EXPECT_EQ(changed.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(changed.error().message(), HasSubstr("index again"));
}

TEST_F(AzureStoreTest, BelievesNoBytesOfAnotherChecksum) {
  const auto store = open(std::nullopt);
  for (const std::string bytes : {"abcd", "abce"}) {
    script_.answer(206, bytes,
                   {{"content-range", "bytes 0-3/4"},
                    {"x-ms-blob-content-md5", "4vxxTEcn7pOV8yTNLn8zHw=="}});
    std::array<std::byte, 4> into{};

    const auto result =
        read_range(*store, {.object = {.key = "k"}, .into = into}, {});

    EXPECT_EQ(bool(result), bytes == "abcd");
    if (!result) {
      EXPECT_EQ(result.error().code(), ErrorCode::kUnavailable)
          << "tried again";
    }
  }
}

TEST_F(AzureStoreTest, TakesAWeakTagForTheVersionAndAsksForNoMatchWithIt) {
  const auto store = open(std::nullopt);
  const auto answer = [this](const char* etag) {
    script_.answer(206, "abcd",
                   {{"content-range", "bytes 10-13/99"}, {"etag", etag}});
  };
  answer("W/\"0x1\"");
  answer("\"0x1\"");
  answer("W/\"0x2\"");

  EXPECT_TRUE(read(*store, "\"0x1\""));
  EXPECT_TRUE(read(*store, "W/\"0x1\""));
  EXPECT_EQ(read(*store, "\"0x1\"").error().code(), ErrorCode::kCorrupt);

  EXPECT_EQ(HttpScript::header(script_.asked.at(0), "If-Match"), "\"0x1\"");
  EXPECT_EQ(HttpScript::header(script_.asked.at(1), "If-Match"), "(none)");
}

TEST_F(AzureStoreTest, EndsWhereAListDoesNotAdvance) {
  const auto store = open(std::nullopt);
  for (int i = 0; i < 3; ++i) script_.answer(200, empty_page("m"));

  const auto same = store->list({}, {});

  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(same.error().message(),
              AllOf(HasSubstr("listing az://ds/"), HasSubstr("to itself")));
  EXPECT_EQ(script_.asked.size(), 2u);

  script_.replies.clear();
  for (int i = 0; i < 1100; ++i) {
    script_.answer(200, empty_page(std::to_string(i)));
  }
  const auto endless = store->list({}, {});

  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(endless.error().message(), HasSubstr("pages in a row"));
}

TEST_F(AzureStoreTest, ListsPastPagesThatEndBeforeItsStart) {
  const auto store = open(std::nullopt);
  const auto page = [](const std::string& key, const std::string& marker) {
    return "<EnumerationResults><Blobs><Blob><Name>" + key +
           "</Name><Properties><Content-Length>1</Content-Length></Properties>"
           "</Blob></Blobs><NextMarker>" +
           marker + "</NextMarker></EnumerationResults>";
  };
  for (int i = 0; i < 1100; ++i) {
    script_.answer(200, page("a" + std::to_string(i), std::to_string(i)));
  }
  script_.answer(200, page("c", ""));

  const auto found = store->list({.start_after = "b"}, {});

  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->objects.at(0).key, "c");
}

}  // namespace leat::testing
