#include "leat/store/hub/hub_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/cloud/testing/fake_http.h"
#include "leat/store/hub/testing/fake_hub.h"
#include "leat/store/testing/conformance.h"

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const HubPlace kPlace{"me/ds", "main", ""};

HubSettings settings_at(const std::string& url) {
  return {.endpoint = *parse_endpoint({url, "a test"}),
          .token = FakeHub::kToken};
}

std::shared_ptr<Store> conforming_store(const Objects& objects) {
  auto server = std::make_shared<FakeHub>(objects);
  auto store = open_hub_store(kPlace, settings_at(server->url()),
                              open_http_client({}, nullptr));
  return owning(std::move(server), std::move(store));
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Hub, StoreConformanceTest,
                         conforming({.open = &conforming_store}));

TEST(HubRedirectTest, TheTokenGoesToTheHubAlone) {
  FakeHub server(Objects{{"shard.tar", std::string(5000, 'x')}});
  const auto store = open_hub_store(kPlace, settings_at(server.url()),
                                    open_http_client({}, nullptr));
  const auto info = store->stat("shard.tar", {});
  ASSERT_TRUE(info) << info.error().message();
  const std::size_t before = server.hub_requests();

  for (std::uint64_t offset : {0, 1000, 2000}) {
    std::string bytes(1000, '?');
    ASSERT_TRUE(read_range(*store,
                           {.object = {.key = "shard.tar", .etag = info->etag},
                            .offset = offset,
                            .into = std::as_writable_bytes(std::span(bytes))},
                           {}));
    EXPECT_EQ(bytes, std::string(1000, 'x'));
  }

  EXPECT_EQ(server.tokens_astray(), 0);
  EXPECT_EQ(server.hub_requests() - before, 1u) << "the address is remembered";
}

class HubStoreTest : public ::testing::Test {
 protected:
  Result<void> read(std::string etag = {}) {
    return four_.read(*store_, std::move(etag));
  }
  void redirect(std::string to, std::string etag = "\"h1\"") {
    script_.answer(302, "", {{"location", to}, {"x-linked-etag", etag}});
  }
  std::string asked(std::size_t nth) {
    return script_.asked.at(nth).url + " " +
           HttpScript::header(script_.asked.at(nth), "Authorization");
  }

  HttpScript script_;
  std::unique_ptr<Store> store_ = open_hub_store(
      {"me/ds", "refs/pr/1", ""}, settings_at("https://huggingface.co"),
      std::make_unique<FakeHttp>(script_));
  FourBytes four_;
  const ReplyHeaders range_ = {{"content-range", "bytes 10-13/99"}};
};

TEST_F(HubStoreTest, FollowsRedirectsAndShowsTheTokenToTheHub) {
  redirect("/datasets/you/ds/resolve/x");
  redirect("https://cdn.example.org/c?Signature=s");
  script_.answer(206, "abcd", range_);

  ASSERT_TRUE(read("h1"));

  EXPECT_EQ(four_.got, "abcd");
  EXPECT_EQ(script_.asked.at(2).attempt, 3u)
      << "a later try bears a slower server";
  EXPECT_EQ(asked(0),
            "https://huggingface.co/datasets/me/ds/resolve/refs%2Fpr%2F1/"
            "a%20b/c Bearer PLANTEDTOKEN");
  EXPECT_EQ(asked(1),
            "https://huggingface.co/datasets/you/ds/resolve/x "
            "Bearer PLANTEDTOKEN");
  EXPECT_EQ(asked(2), "https://cdn.example.org/c?Signature=s (none)");
}

TEST_F(HubStoreTest, ShowsTheTokenToNoHostThatOnlyLooksLikeTheHub) {
  redirect("https://huggingface.co.evil.org/c");
  script_.answer(206, "abcd", range_);
  redirect("https://huggingface.co@evil.org/c");

  ASSERT_TRUE(read());
  EXPECT_EQ(asked(1), "https://huggingface.co.evil.org/c (none)");
}

TEST_F(HubStoreTest, FollowsNoRedirectOutOfTlsNorInACircle) {
  redirect("http://cdn.example.org/c");
  EXPECT_THAT(read().error().message(), HasSubstr("no https address"));
  redirect("//evil.org/c");
  EXPECT_EQ(read().error().code(), ErrorCode::kUnavailable);
  for (int i = 0; i < 9; ++i) redirect("/around");
  EXPECT_THAT(read().error().message(), HasSubstr("circle"));
  EXPECT_EQ(script_.asked.size(), 7u);
}

TEST_F(HubStoreTest, NoticesAnotherVersionWhereItIsRedirected) {
  redirect("https://cdn.example.org/c", "\"h2\"");

  const auto changed = read("h1");

  EXPECT_EQ(changed.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(changed.error().message(),
              AllOf(HasSubstr("hf://datasets/me/ds@refs/pr/1/a b/c"),
                    HasSubstr("index again")));
  EXPECT_EQ(script_.asked.size(), 1u) << "other content is not fetched";
}

TEST_F(HubStoreTest, AsksForAnotherAddressWhereOneIsNoLongerGood) {
  redirect("https://cdn.example.org/old");
  script_.answer(206, "abcd", range_);
  script_.answer(403, "expired");
  redirect("https://cdn.example.org/new");
  script_.answer(206, "abcd", range_);

  EXPECT_TRUE(read());
  EXPECT_EQ(read().error().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(read());
  EXPECT_EQ(asked(4), "https://cdn.example.org/new (none)");
}

TEST(HubRedirectTest, ShowsNoTokenAndNoSignedAddressThatAServerRepeats) {
  constexpr std::string_view kSigned = "PLANTEDSIGNATURE0123456789";
  const auto repeat = [](const ServerRequest& request) {
    return ServerReply{
        .status = 404,
        .headers = {{"X-Error-Code",
                     request.header("authorization") + " " + request.target}}};
  };
  ScriptedServer network(repeat);
  ScriptedServer server([&](const ServerRequest& request) {
    if (request.target.find("/resolve/") == std::string::npos) {
      return repeat(request);
    }
    return ServerReply{.status = 302,
                       .headers = {{"Location", network.url("/c?Signature=") +
                                                    std::string(kSigned)}}};
  });
  const auto store = open_hub_store(kPlace, settings_at(server.url()),
                                    open_http_client({}, nullptr));

  FourBytes four;
  for (const Error& error :
       {store->list({}, {}).error(), store->stat("k", {}).error(),
        four.read(*store).error()}) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound) << error.message();
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("(hidden)"), Not(HasSubstr("PLANTED"))));
  }
}

TEST_F(HubStoreTest, EndsWhereAListDoesNotAdvance) {
  const auto answer = [this](const std::string& cursor) {
    script_.answer(200, "[]",
                   {{"link", "<https://huggingface.co/x?cursor=" + cursor +
                                 ">; rel=\"next\""}});
  };
  for (int i = 0; i < 2; ++i) answer("c");

  const auto same = store_->list({}, {});

  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(same.error().message(),
              AllOf(HasSubstr("hf://datasets/me/ds"), HasSubstr("to itself")));

  for (int i = 0; i < 1100; ++i) answer(std::to_string(i));
  const auto endless = store_->list({}, {});

  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(endless.error().message(), HasSubstr("pages in a row"));
}

}  // namespace leat::testing
