#include "leat/runtime/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string, std::less<>>;

struct Case {
  const char* what;
  Variables variables;
  Rank rank;
  Rank local;
  std::string_view launcher;
};

TEST(LauncherTest, ReadsEachLaunchersVariables) {
  const std::vector<Case> cases = {
      {"nobody launched it", {}, {0, 1}, {0, 1}, ""},
      {"torchrun",
       {{"RANK", "5"},
        {"WORLD_SIZE", "16"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "4"}},
       {5, 16},
       {1, 4},
       "torchrun"},
      {"an older torch launcher, which does not count the node's",
       {{"RANK", "5"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}},
       {5, 16},
       {0, 1},
       "torchrun"},
      {"srun",
       {{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "3"},
        {"SLURM_STEP_NUM_TASKS", "4"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_NTASKS_PER_NODE", "2"}},
       {3, 4},
       {1, 2},
       "Slurm"},
      {"a step smaller than its job's nodes",
       {{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "0"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_LOCALID", "0"},
        {"SLURM_NTASKS_PER_NODE", "8"}},
       {0, 1},
       {0, 1},
       "Slurm"},
      {"srun without --ntasks-per-node, on the last of uneven nodes",
       {{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "10"},
        {"SLURM_STEP_NUM_TASKS", "11"},
        {"SLURM_LOCALID", "2"},
        {"SLURM_NODEID", "2"},
        {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"}},
       {10, 11},
       {2, 3},
       "Slurm"},
      {"the same on the second node",
       {{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "7"},
        {"SLURM_STEP_NUM_TASKS", "11"},
        {"SLURM_LOCALID", "3"},
        {"SLURM_NODEID", "1"},
        {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"}},
       {7, 11},
       {3, 4},
       "Slurm"},
      {"a step of two tasks a node in a job of eight",
       {{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "2"},
        {"SLURM_STEP_NUM_TASKS", "4"},
        {"SLURM_LOCALID", "0"},
        {"SLURM_NTASKS_PER_NODE", "8"},
        {"SLURM_NODEID", "1"},
        {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}},
       {2, 4},
       {0, 2},
       "Slurm"},
      {"a shell of salloc, which is no task",
       {{"SLURM_NTASKS", "8"}},
       {0, 1},
       {0, 1},
       ""},
      {"a batch script of eight tasks, of which srun started none",
       {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "0"}},
       {0, 1},
       {0, 1},
       ""},
      {"the same of a Slurm that numbers the script's step",
       {{"SLURM_STEP_ID", "4294967291"},
        {"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "8"},
        {"SLURM_STEP_NUM_TASKS", "8"}},
       {0, 1},
       {0, 1},
       ""},
      {"a step of two tasks in a job of eight",
       {{"SLURM_STEP_ID", "3"},
        {"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "8"},
        {"SLURM_STEP_NUM_TASKS", "2"}},
       {1, 2},
       {0, 1},
       "Slurm"},
      {"mpirun whose daemons are a step of Slurm's, one a node",
       {{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "1"},
        {"SLURM_STEP_NUM_TASKS", "2"},
        {"OMPI_COMM_WORLD_RANK", "5"},
        {"OMPI_COMM_WORLD_SIZE", "8"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
       {5, 8},
       {1, 4},
       "Open MPI"},
      {"mpirun",
       {{"OMPI_COMM_WORLD_RANK", "2"},
        {"OMPI_COMM_WORLD_SIZE", "3"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}},
       {2, 3},
       {0, 1},
       "Open MPI"},
      {"MVAPICH",
       {{"MV2_COMM_WORLD_RANK", "5"},
        {"MV2_COMM_WORLD_SIZE", "8"},
        {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
        {"MV2_COMM_WORLD_LOCAL_SIZE", "4"}},
       {5, 8},
       {1, 4},
       "MVAPICH"},
      {"Horovod",
       {{"HOROVOD_RANK", "5"},
        {"HOROVOD_SIZE", "8"},
        {"HOROVOD_LOCAL_RANK", "1"},
        {"HOROVOD_LOCAL_SIZE", "4"}},
       {5, 8},
       {1, 4},
       "Horovod"},
      {"MPICH or Intel MPI, started by one task of srun a node",
       {{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "1"},
        {"SLURM_STEP_NUM_TASKS", "2"},
        {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
        {"SLURM_NODEID", "1"},
        {"PMI_RANK", "5"},
        {"PMI_SIZE", "8"},
        {"MPI_LOCALRANKID", "1"},
        {"MPI_LOCALNRANKS", "4"}},
       {5, 8},
       {1, 4},
       "MPI"},
      {"Cray's MPI",
       {{"PMI_RANK", "5"},
        {"PMI_SIZE", "8"},
        {"PMI_LOCAL_RANK", "1"},
        {"PMI_LOCAL_SIZE", "4"}},
       {5, 8},
       {1, 4},
       "MPI"},
      {"srun with a PMI that does not count the node's",
       {{"PMI_RANK", "5"},
        {"PMI_SIZE", "8"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "5"},
        {"SLURM_STEP_NUM_TASKS", "8"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_NODEID", "1"},
        {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}},
       {5, 8},
       {1, 4},
       "MPI"},
      {"a PMI rank alone, which says nothing",
       {{"PMI_RANK", "5"}},
       {0, 1},
       {0, 1},
       ""},
      {"a script that gives srun's numbers to torch",
       {{"RANK", "5"},
        {"WORLD_SIZE", "8"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "5"},
        {"SLURM_STEP_NUM_TASKS", "8"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_NTASKS_PER_NODE", "4"}},
       {5, 8},
       {1, 4},
       "torchrun"},
      {"the same with Open MPI's",
       {{"RANK", "5"},
        {"WORLD_SIZE", "8"},
        {"OMPI_COMM_WORLD_RANK", "5"},
        {"OMPI_COMM_WORLD_SIZE", "8"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
       {5, 8},
       {1, 4},
       "torchrun"},
      {"processes of a batch script, whose rank is not theirs",
       {{"RANK", "0"},
        {"WORLD_SIZE", "8"},
        {"SLURM_STEP_ID", "4294967291"},
        {"SLURM_PROCID", "0"},
        {"SLURM_STEP_NUM_TASKS", "8"},
        {"SLURM_NTASKS_PER_NODE", "8"}},
       {0, 8},
       {0, 1},
       "torchrun"},
      {"LOCAL_RANK, and the number of nodes",
       {{"RANK", "5"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_RANK", "1"},
        {"NNODES", "2"}},
       {5, 8},
       {1, 4},
       "torchrun"},
      {"the same by Slurm's word",
       {{"RANK", "0"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_RANK", "0"},
        {"SLURM_NNODES", "2"}},
       {0, 8},
       {0, 4},
       "torchrun"},
      {"the same by torchelastic's word",
       {{"RANK", "7"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_RANK", "3"},
        {"GROUP_WORLD_SIZE", "2"}},
       {7, 8},
       {3, 4},
       "torchrun"},
      {"nodes of unequal size",
       {{"RANK", "5"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_RANK", "0"},
        {"NNODES", "2"}},
       {5, 8},
       {0, 1},
       "torchrun"},
      {"ranks that meet on loopback",
       {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "127.0.0.1"}},
       {5, 8},
       {5, 8},
       "torchrun"},
      {"ranks that meet elsewhere",
       {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "10.0.0.1"}},
       {5, 8},
       {0, 1},
       "torchrun"},
      {"torchrun inside Slurm: torchrun knows better",
       {{"RANK", "9"},
        {"WORLD_SIZE", "16"},
        {"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "2"}},
       {9, 16},
       {0, 1},
       "torchrun"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);

    const auto launch = read_launch(fake_env(c.variables));

    ASSERT_TRUE(launch) << launch.error().message();
    EXPECT_EQ(launch->rank, c.rank);
    EXPECT_EQ(launch->local, c.local);
    EXPECT_TRUE(launch->is_local_known || launch->local == (Rank{0, 1}));
    EXPECT_EQ(launch->launcher, c.launcher);
  }
}

TEST(LauncherTest, PlacesARankThatNoLauncherGave) {
  Launch launch{.rank = {3, 4}};
  place_on_node(launch, fake_env({{"MASTER_ADDR", "localhost"}}));
  EXPECT_TRUE(launch.is_local_known);
  EXPECT_EQ(launch.local, (Rank{3, 4}));

  place_on_node(launch, fake_env({}));
  EXPECT_FALSE(launch.is_local_known);
  EXPECT_EQ(launch.local, (Rank{0, 1}));
}

TEST(LauncherTest, NamesTheVariableThatIsWrong) {
  std::vector<std::pair<Variables, std::string>> cases = {
      {{{"RANK", "one"}, {"WORLD_SIZE", "2"}}, "RANK is \"one\""},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK is \"-1\""},
      {{{"RANK", ""}, {"WORLD_SIZE", "2"}}, "RANK is \"\""},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2 "}}, "WORLD_SIZE is \"2 \""},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4294967296"}}, "WORLD_SIZE is"},
      {{{"RANK", "0"}}, "RANK is set but WORLD_SIZE is not"},
      {{{"WORLD_SIZE", "2"}}, "WORLD_SIZE is set but RANK is not"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK=2 is not below"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "RANK=0 is not below"},
      {{{"RANK", "0"},
        {"WORLD_SIZE", "4"},
        {"LOCAL_RANK", "2"},
        {"LOCAL_WORLD_SIZE", "2"}},
       "LOCAL_RANK=2 is not below"},
      {{{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "3"},
        {"SLURM_STEP_NUM_TASKS", "8"},
        {"SLURM_LOCALID", "3"},
        {"SLURM_NODEID", "0"},
        {"SLURM_STEP_TASKS_PER_NODE", "3,5"}},
       "SLURM_LOCALID=3 is not below the 3 processes of its node"},
      {{{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "x"},
        {"SLURM_STEP_NUM_TASKS", "4"}},
       "SLURM_PROCID"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}},
       "SLURM_STEP_NUM_TASKS is not"},
      {{{"SLURM_STEP_ID", "x"}, {"SLURM_PROCID", "0"}},
       "SLURM_STEP_ID is \"x\""},
      {{{"OMPI_COMM_WORLD_RANK", "0"}}, "OMPI_COMM_WORLD_SIZE is not"},
  };
  for (const char* counts : {"", "x", "4(", "4(x", "4(x2", "4,", "4", "4(x1)",
                             "-4(x2)", "4(x4294967296)"}) {
    cases.emplace_back(
        Variables{{"SLURM_STEP_ID", "0"},
                  {"SLURM_PROCID", "4"},
                  {"SLURM_STEP_NUM_TASKS", "8"},
                  {"SLURM_LOCALID", "0"},
                  {"SLURM_NODEID", "1"},
                  {"SLURM_STEP_TASKS_PER_NODE", counts}},
        "SLURM_STEP_TASKS_PER_NODE is \"" + std::string(counts) + "\"");
  }
  for (const auto& [variables, says] : cases) {
    const auto launch = read_launch(fake_env(variables));

    ASSERT_FALSE(launch) << says;
    EXPECT_EQ(launch.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(launch.error().message(), HasSubstr(says));
    EXPECT_THAT(launch.error().message(), HasSubstr("world_size="));
  }
}

}  // namespace
}  // namespace leat
