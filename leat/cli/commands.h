// Every command of `leat`, by name. A new one adds a line here, a line to the
// list in main.cc and a file to CMakeLists.txt.
#pragma once
#include "leat/cli/command.h"

namespace leat {

extern const Command kAgentCommand;
extern const Command kBenchCommand;
extern const Command kBucketCommand;
extern const Command kCacheCommand;
extern const Command kDiffCommand;
extern const Command kDocsCommand;
extern const Command kDoctorCommand;
extern const Command kExplainCommand;
extern const Command kIndexCommand;
extern const Command kLedgerCommand;
extern const Command kLsCommand;
extern const Command kOpsCommand;
extern const Command kPackCommand;
extern const Command kPlanCommand;
extern const Command kPrepareCommand;
extern const Command kProfileCommand;
extern const Command kQueryCommand;
extern const Command kRecommendCommand;
extern const Command kShowCommand;
extern const Command kSimulateCommand;
extern const Command kStatCommand;
extern const Command kTopCommand;
extern const Command kVerifyCommand;
extern const Command kWarmCommand;
extern const Command kWhatIfCommand;

}  // namespace leat
