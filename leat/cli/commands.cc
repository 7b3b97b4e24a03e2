// The list of commands. It has this file to itself: a program that defines
// commands() in a source of its own has other commands, as tests/command does.

#include "leat/cli/commands.h"

#include <vector>

namespace leat {
namespace {

// Written in Python.
const Command kDiff{.name = "diff",
                    .summary = "tell which samples two datasets do not share",
                    .python = "leat._diff"};
const Command kPack{.name = "pack",
                    .summary = "write the samples of a dataset as shards",
                    .python = "leat._shards"};
const Command kPrepare{
    .name = "prepare",
    .summary = "do the steps of a file: index, verify, pack, warm; resumable",
    .python = "leat._prepare._command"};
const Command kQuery{
    .name = "query",
    .summary = "choose samples by SQL over the catalogue's columns",
    .python = "leat._query._command"};
const Command kShow{
    .name = "show",
    .summary = "make a page of samples, as they are and as ops make them",
    .python = "leat._show._command"};

}  // namespace

std::span<const CommandGroup> commands() {
  // The overview of `leat` and `leat --help`, in this order.
  static const std::vector<CommandGroup> kCommands = {
      {"Look at data and index it",
       {&kLsCommand, &kStatCommand, &kShow, &kDiff, &kQuery, &kIndexCommand,
        &kWarmCommand, &kCacheCommand, &kPack, &kPrepare}},
      {"Find out how fast training goes, and why",
       {&kDoctorCommand, &kBenchCommand, &kProfileCommand, &kExplainCommand}},
      {"Predict the effect of changes",
       {&kWhatIfCommand, &kRecommendCommand, &kPlanCommand, &kSimulateCommand}},
      {"Prove what a run delivered and cost",
       {&kVerifyCommand, &kLedgerCommand}},
      {"Share a node among jobs", {&kAgentCommand, &kTopCommand}},
      {"Try things, and look things up",
       {&kBucketCommand, &kOpsCommand, &kDocsCommand}},
  };
  return kCommands;
}

}  // namespace leat
