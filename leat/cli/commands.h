// Every command of `leat` that is written in C++, by name, and the list of all.
// A new one adds a line here, its name to the list in commands.cc and a file to
// CMakeLists.txt.
#pragma once
#include <span>

#include "leat/cli/command.h"

namespace leat {

extern const Command kAgentCommand;
extern const Command kBenchCommand;
extern const Command kBucketCommand;
extern const Command kCacheCommand;
extern const Command kDocsCommand;
extern const Command kDoctorCommand;
extern const Command kExplainCommand;
extern const Command kIndexCommand;
extern const Command kLedgerCommand;
extern const Command kLsCommand;
extern const Command kOpsCommand;
extern const Command kPlanCommand;
extern const Command kProfileCommand;
extern const Command kRecommendCommand;
extern const Command kSimulateCommand;
extern const Command kStatCommand;
extern const Command kTopCommand;
extern const Command kVerifyCommand;
extern const Command kWarmCommand;
extern const Command kWhatIfCommand;

/// All commands, by purpose.
std::span<const CommandGroup> commands();

}  // namespace leat
