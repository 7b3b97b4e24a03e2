// `leat ledger`: runs side by side, and the appendix of a paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "leat/cli/commands.h"
#include "leat/cli/ledger_appendix.h"
#include "leat/cli/testing/command_test.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

using Outcome = testing::CommandOutcome;

class LedgerCommandTest : public testing::CommandTest {
 protected:
  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), "ledger");
    return CommandTest::run({&kLedgerCommand}, std::move(words));
  }
};

constexpr const char* kBefore =
    R"({"ledger": {"provider": "s3", "gets": 4000, "lists": 1, "bytes": 1000,
        "request_dollars": 0.5, "processor_energy": "modelled", "kwh": 2.0}})";
constexpr const char* kAfter =
    R"({"gets": 1000, "lists": 1, "bytes": 1000, "processor_joules": 3.6e6,
        "processor_energy": "measured", "kwh": 1.0})";

TEST_F(LedgerCommandTest, ComparesRunsWithTheFirst) {
  const Outcome outcome =
      run({put("before.json", kBefore), put("after.json", kAfter)});

  ASSERT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1000 (0.25 x)"));
  EXPECT_THAT(outcome.out, HasSubstr("measured"));
  EXPECT_THAT(outcome.out, HasSubstr("modelled"));
  EXPECT_THAT(outcome.out, ::testing::Not(HasSubstr("CO2")));
}

TEST_F(LedgerCommandTest, AGridSaysWhatEnergyEmits) {
  const std::string carbon =
      put("carbon.toml",
          "[mine]\nsource = \"the meter\"\n[mine.grams_per_kwh]\nhere = 250\n");

  const Outcome outcome = run({put("before.json", kBefore), "--grid", "here",
                               "--carbon", carbon, "--json"});

  ASSERT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  const auto told = nlohmann::json::parse(outcome.out);
  const auto& ledger = told["runs"][0]["ledger"];
  EXPECT_DOUBLE_EQ(ledger["co2_grams"], 500);
  EXPECT_EQ(ledger["carbon_source"], "the meter");
  EXPECT_THAT(told["note"].get<std::string>(), HasSubstr("the meter"));
}

TEST_F(LedgerCommandTest, AppendicesHoldTheTableAndEscapeNames) {
  const std::string report = put("a_b&<1>.json", kBefore);

  const Outcome outcome =
      run({report, "--latex", path("t.tex"), "--html", path("t.html")});

  ASSERT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_THAT(read("t.tex"), HasSubstr("a\\_b\\&<1>.json"));
  EXPECT_THAT(read("t.tex"), HasSubstr("GETs & 4000 \\\\\n"));
  EXPECT_THAT(read("t.tex"), HasSubstr("\\end{table}"));
  EXPECT_THAT(read("t.html"), HasSubstr("a_b&amp;&lt;1&gt;.json"));
  EXPECT_THAT(read("t.html"), HasSubstr("<td>GETs</td><td>4000</td>"));
}

TEST_F(LedgerCommandTest, AGridOfARunThatBeganAtNoTimeIsAnError) {
  const Outcome outcome =
      run({put("r.json", R"({"gets": 1, "kwh": 1, "began": "x"})"), "--grid",
           "DEU"});

  EXPECT_NE(outcome.code, ExitCode::kDone);
  EXPECT_THAT(outcome.err, HasSubstr("began is no time"));
}

TEST_F(LedgerCommandTest, WhatIsNoLedgerIsRefusedByItsName) {
  for (const auto& [text, why] :
       {std::pair{"no json", "is no JSON object"},
        std::pair{"[1]", "is no JSON object"},
        std::pair{"{\"a\": 1}", "has no ledger"},
        std::pair{"{\"ledger\": 3}", "has no ledger"},
        std::pair{"{\"gets\": \"many\"}", "gets is no amount"},
        std::pair{"{\"gets\": -1}", "gets is no amount"},
        std::pair{"{\"gets\": 1, \"began\": \"x\"}", "began is no time"},
        std::pair{"{\"gets\": 1, \"began\": -1}", "began is no time"},
        std::pair{"{\"gets\": 1, \"began\": 1e18}", "began is no time"},
        std::pair{"{\"gets\": 1, \"provider\": 3}", "provider is no text"}}) {
    const auto wrong = ledger_in(text, "r.json");

    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(wrong.error().message(), HasSubstr(why));
    EXPECT_THAT(wrong.error().message(), HasSubstr("r.json"));
  }
}

}  // namespace
}  // namespace leat
