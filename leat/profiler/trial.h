// One run of the training under one condition, and what its ranks measured.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/result.h"
#include "leat/profiler/launch.h"
#include "leat/profiler/power_log.h"

namespace leat {

/// The options that the hook in the script gets (python/leat/_profile/hook.py).
struct TrialOptions {
  std::uint32_t warmup = 0;
  std::uint32_t steps = 0;
  /// Batches to draw and then give again; 0: all come from the loader.
  std::uint32_t replayed = 0;
  /// Batches to draw at the end as fast as they come.
  std::uint32_t drained = 0;
  /// Rows of a rank in the whole job, if batches are replayed.
  std::optional<std::uint64_t> rows{};
  bool notes_files = false;
  bool reads_power = false;
};

/// The place and command of every run of a profile.
struct TrialPlace {
  std::vector<std::string> command;
  std::filesystem::path hook_folder;  ///< Holds sitecustomize.py.
  std::filesystem::path run_folder;   ///< Ours; emptied before each run.
  /// Covered by a scratch layer; none: the script writes for real.
  std::vector<std::filesystem::path> scratch_folders;
  std::string python_path;  ///< PYTHONPATH as it was.
  Nanoseconds limit{};      ///< A run that takes longer has failed.
  /// Kept open for as long as any process of a run lives (run_folder.h); or -1.
  int held = -1;
};

/// The notes of one rank.
struct RankRecord {
  std::uint32_t rank = 0;
  std::vector<double> step_seconds;
  std::vector<double> wait_seconds;  ///< The part of each step inside next().
  /// For a batch, while nobody trains; none: not known.
  std::vector<double> supply_seconds;
  /// CPU time of a batch meanwhile, for this process and its workers.
  std::optional<double> supply_cpu_seconds;
  /// Batches of its loader, if that has a length.
  std::optional<std::uint64_t> epoch_batches;
  /// Processes that make its batches; none: threads do.
  std::optional<std::uint64_t> workers;
  bool loads_ahead = false;  ///< They are made while training computes.
  bool is_pipelined =
      false;  ///< Their bytes are fetched while others are made.
  /// The gradients that DistributedDataParallel reduces in a step; 0 without
  /// it.
  std::uint64_t gradient_bytes = 0;
  std::uint64_t gradient_buckets = 0;
  std::optional<std::uint64_t> rows;  ///< Rows of its first batch.
  std::uint64_t seen = 0;             ///< Batches, warm-up included.
  /// From when until when its steps were measured, by the monotonic clock; the
  /// same for none.
  TimePoint measured_from{};
  TimePoint measured_until{};
  std::uint64_t measured_batches = 0;  ///< Given to it in between.
  std::string loader;                  ///< Class of the training's loader.
  std::string accelerator;             ///< Name of the device, or empty.
  std::string torch;                   ///< Version, or empty.
};

struct Trial {
  static constexpr std::size_t kMostPlaces = 8;

  std::vector<RankRecord> ranks;  ///< In order of rank, all of them.
  std::vector<std::filesystem::path> opened_files;
  /// "host:port" of what Python code connected to while batches were made; the
  /// endpoint that it was given is not among them. At most kMostPlaces.
  std::vector<std::string> connects_to;
  /// The power of this machine, while rank 0 was measured.
  Watts power{};
};

/// Runs the command as `launch` says and reads what the ranks wrote. Blocks.
///
/// Errors:
///   kInvalidArgument   the script ended before it had made enough steps, or
///                      iterated over no loader that we know
///   kUnavailable       the script failed; holds what it said
///   kDeadlineExceeded  it took longer than place.limit
///   kCancelled         `stop` fired
Result<Trial> run_trial(const TrialPlace& place, LaunchPlan launch,
                        const TrialOptions& options,
                        const std::stop_token& stop);

/// Reads a rank's notes, as JSON. The script may spoil the file, so everything
/// is checked.
///
/// Errors:
///   kCorrupt  it is not what the hook writes; says what is wrong
Result<RankRecord> parse_record(std::string_view json);

}  // namespace leat
