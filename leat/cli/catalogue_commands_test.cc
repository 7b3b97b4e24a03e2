// `leat index`, `ls` and `stat` on folders of this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "leat/cli/commands.h"
#include "leat/cli/testing/command_test.h"
#include "leat/codec/testing/tar_builder.h"

namespace leat {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Outcome = testing::CommandOutcome;

class CatalogueCommandsTest : public testing::CommandTest {
 protected:
  CatalogueCommandsTest() {
    put("data/cat/1.jpg", "meow");
    put("data/dog/2.jpg", "woof woof");
  }

  Outcome run(std::vector<std::string> words) const {
    return CommandTest::run({&kBenchCommand, &kIndexCommand, &kLsCommand,
                             &kOpsCommand, &kStatCommand},
                            std::move(words));
  }

  nlohmann::json run_json(std::vector<std::string> words) const {
    words.push_back("--json");
    const Outcome outcome = run(std::move(words));
    EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(CatalogueCommandsTest, StatTellsWhatADatasetConsistsOf) {
  const nlohmann::json told = run_json({"stat", path("data")});

  EXPECT_EQ(told["samples"], 2);
  EXPECT_EQ(told["objects"], 2);
  EXPECT_EQ(told["bytes"], 13);
  EXPECT_EQ(told["layout"], "objects");
  EXPECT_EQ(told["classes"], (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(told["fields"][1]["name"], "label");
  EXPECT_EQ(told["digest"].get<std::string>().size(), 32u);
  EXPECT_EQ(told["catalogue"]["source"], "built");
  EXPECT_THAT(told["catalogue"]["location"].get<std::string>(),
              StartsWith(path("cache")));
}

TEST_F(CatalogueCommandsTest, WhoeverOpensACatalogueSeesWhatHasChanged) {
  const nlohmann::json first = run_json({"stat", path("data")});
  EXPECT_EQ(first["samples"], 2);
  EXPECT_GT(first["catalogue"]["listed_at"], 1'700'000'000);
  put("data/dog/3.jpg", "wuff");
  EXPECT_EQ(run_json({"stat", path("data"), "--refresh=never"})["samples"], 2);
  const Outcome seen = run({"stat", path("data")});
  EXPECT_THAT(seen.err, HasSubstr("1 object was added and 0 removed"));
  EXPECT_THAT(seen.out, ContainsRegex("built, of [0-9]+ s ago"));
  EXPECT_EQ(run({"stat", path("data")}).err, "");

  put("data/dog/4.jpg", "wuff");
  EXPECT_THAT(run({"ls", path("data")}).out, HasSubstr("4.jpg"));
  put("data/dog/5.jpg", "wuff");
  EXPECT_EQ(run_json({"bench", path("data"), "--refresh", "--batch-size", "1",
                      "--epochs", "1"})["samples"],
            5);
  EXPECT_EQ(run({"ls", path("data"), "--refresh=sometimes"}).code,
            ExitCode::kWrongUsage);
}

TEST_F(CatalogueCommandsTest, WhatAFolderThatIsNoUtf8BringsIsJsonAllTheSame) {
  put("\xff/1.jpg", "meow");

  const nlohmann::json told =
      run_json({"bench", path("\xff"), "--batch-size", "1", "--epochs", "1"});

  EXPECT_THAT(told["url"].get<std::string>(), ::testing::EndsWith("\ufffd"));
}

TEST_F(CatalogueCommandsTest, OpsAreListedAsTheyAre) {
  EXPECT_THAT(run({"ops"}).out, HasSubstr("random_resized_crop[:size]"));

  const nlohmann::json told = run_json({"ops"});

  EXPECT_EQ(told["ops"][0]["name"], "decode_image");
  EXPECT_GT(told["ops"].size(), 10u);
  EXPECT_EQ(told["params_of_all"][0]["name"], "field");
}

TEST_F(CatalogueCommandsTest, IndexKeepsACatalogueUntilRefreshed) {
  EXPECT_EQ(run_json({"index", path("data")})["catalogue"]["source"], "built");
  put("data/dog/3.jpg", "wuff");

  EXPECT_EQ(run_json({"index", path("data"), "--refresh=never"})["samples"], 2);
  EXPECT_EQ(run_json({"index", path("data"),
                      "--refresh=if-older-than:1d"})["samples"],
            2);
  EXPECT_EQ(run_json({"index", path("data"), "--refresh"})["samples"], 3);
  EXPECT_EQ(run_json({"stat", path("data")})["samples"], 3);
}

TEST_F(CatalogueCommandsTest, IndexPublishesBesideTheData) {
  const nlohmann::json told = run_json({"index", path("data"), "--publish"});

  EXPECT_EQ(told["catalogue"]["source"], "published");
  EXPECT_TRUE(std::filesystem::exists(path("data/.leat/catalogue")));
  EXPECT_EQ(run_json({"stat", path("data")})["catalogue"]["source"],
            "published");
}

TEST_F(CatalogueCommandsTest, ARefreshBesideAPublicationSaysWhatIsFoundFirst) {
  run({"index", path("data"), "--publish"});

  const Outcome outcome = run({"index", path("data"), "--refresh"});

  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_THAT(outcome.err, HasSubstr("--publish"));
}

TEST_F(CatalogueCommandsTest, ClassesGivenDecideTheLabels) {
  const nlohmann::json told =
      run_json({"index", path("data"), "--classes", "dog,cat"});

  EXPECT_EQ(told["classes"], (std::vector<std::string>{"dog", "cat"}));
}

TEST_F(CatalogueCommandsTest, LsListsObjects) {
  const Outcome outcome = run({"ls", path("data")});

  EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_EQ(outcome.out,
            "         1                4  cat/1.jpg\n"
            "         1                9  dog/2.jpg\n");
}

TEST_F(CatalogueCommandsTest, LsCountsTheSamplesOfShards) {
  put("shards/0.tar", testing::TarBuilder()
                          .add("a.jpg", "1")
                          .add("a.cls", "2")
                          .add("b.jpg", "3")
                          .finish());

  const Outcome outcome = run({"ls", path("shards"), "--json"});

  EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_EQ(outcome.out, "{\"key\":\"0.tar\",\"bytes\":4096,\"samples\":2}\n");
}

TEST_F(CatalogueCommandsTest, PatternsAndPartsAreLookedAt) {
  for (const std::string name : {"0", "1"}) {
    put("shards/" + name + ".tar",
        testing::TarBuilder().add(name + ".jpg", "1").finish());
  }
  put("data/cat/notes.txt", "no picture");

  const std::string all = path("shards/{0..1}.tar");
  EXPECT_EQ(run_json({"stat", all})["samples"], 2);
  EXPECT_EQ(run_json({"stat", path("shards/*.tar")})["samples"], 2);
  EXPECT_EQ(run_json({"stat", path("shards/1.tar")})["samples"], 1);
  EXPECT_THAT(run({"ls", path("shards/*.tar")}).out,
              AllOf(HasSubstr("0.tar"), HasSubstr("1.tar")));
  EXPECT_EQ(run({"ls", path("shards/1.tar"), "--json"}).out,
            "{\"key\":\"1.tar\",\"bytes\":2048,\"samples\":1}\n");
  EXPECT_EQ(run_json({"stat", path("data")})["samples"], 2);
  EXPECT_EQ(run_json({"stat", path("data"), "--extensions", "txt"})["samples"],
            1);
  EXPECT_EQ(run_json({"stat", path("data"), "--include", "cat/*"})["samples"],
            1);
  EXPECT_EQ(run_json({"stat", path("data"), "--exclude", "cat/*"})["samples"],
            1);
}

TEST_F(CatalogueCommandsTest, LsListsWhatIsNoDataset) {
  put("mixed/0.tar", "no archive");
  put("mixed/x/1.jpg", "12345");
  put("mixed/.hidden", "1");

  const Outcome text = run({"ls", path("mixed")});
  const Outcome json = run({"ls", path("mixed"), "--json"});

  EXPECT_EQ(text.code, ExitCode::kDone) << text.err;
  EXPECT_EQ(text.out,
            "         -                1  .hidden\n"
            "         -               10  0.tar\n"
            "         -                5  x/1.jpg\n");
  EXPECT_THAT(text.err, HasSubstr("no dataset, so everything is listed"));
  EXPECT_THAT(text.err, HasSubstr("'0.tar' is a tar shard"));
  EXPECT_THAT(json.out, StartsWith("{\"key\":\".hidden\",\"bytes\":1}\n"));
}

TEST_F(CatalogueCommandsTest, LsListsPlainlyIfAsked) {
  put("data/.hidden", "1");

  const Outcome outcome = run({"ls", path("data"), "--plain"});

  EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_THAT(outcome.out,
              StartsWith("         -                1  .hidden\n"));
  EXPECT_EQ(outcome.err, "");
  EXPECT_FALSE(std::filesystem::exists(path("cache")));
}

TEST_F(CatalogueCommandsTest, LsListsOneObject) {
  const Outcome outcome = run({"ls", path("data/cat/1.jpg")});

  EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_EQ(outcome.out, "         1                4  1.jpg\n");
}

TEST_F(CatalogueCommandsTest, LsOfNothingFails) {
  for (const std::string place : {"nothing", "data/cat/9.jpg"}) {
    for (const bool is_plain : {false, true}) {
      std::vector<std::string> words{"ls", path(place)};
      if (is_plain) words.push_back("--plain");
      const Outcome outcome = run(words);
      EXPECT_EQ(outcome.code, ExitCode::kFailed);
      EXPECT_EQ(outcome.out, "");
      EXPECT_THAT(outcome.err, HasSubstr(path(place)));
    }
  }
}

TEST_F(CatalogueCommandsTest, AFolderThatIsNotThereFails) {
  const Outcome outcome = run({"stat", path("nothing")});

  EXPECT_EQ(outcome.code, ExitCode::kFailed);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(path("nothing")));
}

TEST_F(CatalogueCommandsTest, AMixtureFailsAndSaysWhich) {
  put("data/0.tar", testing::TarBuilder().finish());

  const Outcome outcome = run({"index", path("data")});

  EXPECT_EQ(outcome.code, ExitCode::kWrongUsage);
  EXPECT_THAT(outcome.err, HasSubstr("'0.tar'"));
}

}  // namespace
}  // namespace leat
