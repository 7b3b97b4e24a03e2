// Predicts the time of a step if something about it were different.
#pragma once
#include <cstdint>
#include <optional>

#include "leat/base/result.h"

namespace leat {

/// A measured step of the slowest rank. Seconds, unless stated otherwise.
struct MeasuredStep {
  double compute = 0;
  double interconnect = 0;
  double network = 0;
  double preparation = 0;
  double fetch = 0;  ///< Without `has_warm`: preparation and fetch together.
  bool has_warm = true;
  /// The time to supply a batch while nobody trains: with its bytes in memory,
  /// and from the store.
  double warm_supply = 0;
  double cold_supply = 0;
  /// Whether that was measured. Else the measured step alone can be told.
  bool has_supply = true;
  /// Bytes are fetched while others are prepared, as Leat does; else a worker
  /// does one after the other, as torch's do.
  bool is_pipelined = false;
  /// Batches are made while training computes; so they are where it is
  /// pipelined, or has workers.
  bool loads_ahead = false;
  /// Processes that each make one batch at a time; 0: the training's own does.
  /// None: threads do, or it is not known.
  std::optional<std::uint32_t> workers;
  /// CPU time that preparing a rank's batch takes, and the cores of a node.
  std::optional<double> preparation_cpu;
  double cores = 0;
  /// The share of read time that passes before the first byte: 0 to 1.
  std::optional<double> latency_share;
  std::uint32_t devices = 1;  ///< On a node; one process each.
  std::uint32_t nodes = 1;
};

/// The change that is asked about. Everything else stays as it was measured.
struct WhatIfSetting {
  double cached = 0;         ///< Share of bytes that come from memory: 0 to 1.
  bool loads_ahead = false;  ///< Batches are made while training computes.
  /// Processes that make a rank's batches; none: as many as were measured.
  /// Only where MeasuredStep::workers is known. One or more load ahead.
  std::optional<std::uint32_t> workers{};
  double cores = 1;      ///< A node's cores, as a multiple of those measured.
  double bandwidth = 1;  ///< From the store, likewise.
  double latency = 1;    ///< The store's latency, likewise.
  /// A batch's bytes, none of them cached, take no less: the network is full.
  double least_fetch = 0;
  double accelerator = 1;  ///< Its speed, likewise.
  std::uint32_t devices = 1;
  std::uint32_t nodes = 1;
  /// Exposed communication, if more is known of it than that it is a ring's.
  std::optional<double> interconnect{};
  std::optional<double> network{};
};

/// Seconds of one step.
struct PredictedStep {
  double compute = 0;
  double interconnect = 0;
  double network = 0;
  double preparation = 0;
  double fetch = 0;
  double seconds() const {
    return compute + interconnect + network + preparation + fetch;
  }
};

/// Predicts a step from one that was measured.
///
/// A batch costs a supply time S, and what training does meanwhile takes B =
/// compute + interconnect + network. How much of S hides behind B was measured:
/// a step takes B + S - a * min(B, S), with a = 0 where a loader makes each
/// batch when it is asked for and a = 1 where it loads ahead. a is taken from
/// the warm run and from the cold one, so that both are met exactly, and lies
/// between them where part of the bytes is cached. With everything hidden this
/// is DS-Analyzer's min(G, P, F) (Mohan et al., VLDB 2021, section 4).
///
/// Cores: preparing a batch takes at least its CPU time over the cores, for all
/// devices of a node together. Fewer cores than needed slow it down. More cores
/// help if the measured ones were busy and the loader uses more: that many
/// workers are no faster than their CPU time over their number. While one of
/// them waits for bytes, the others have its core: the store's time is added to
/// a worker's computation, and not to that of the cores. n workers instead of m
/// take m / n of the time, as far as the cores allow. Devices and nodes:
/// exposed communication grows as a ring's traffic does, as (n - 1) / n
/// (Patarasuk and Yuan, 2009): a lower bound, since hidden communication may
/// come out. Cached: the measurements are its ends, between which no step is
/// shorter than with everything cached or longer than with nothing.
///
/// Threads: any; it does not change.
class StepModel {
 public:
  /// Errors:
  ///   kInvalidArgument  a time is negative or no number, compute is 0, no
  ///                     cores, devices or nodes, a share outside 0 to 1
  static Result<StepModel> of(const MeasuredStep& measured);

  /// The setting that was measured.
  WhatIfSetting measured_setting() const;
  const MeasuredStep& measured() const { return measured_; }

  /// REQUIRES: cached in [0, 1], multiples > 0, devices and nodes > 0.
  PredictedStep predict(const WhatIfSetting& setting) const;

  /// Steps of all ranks a second, against what was measured.
  double speedup(const WhatIfSetting& setting) const;

 private:
  explicit StepModel(const MeasuredStep& measured);

  double cores_supply(const WhatIfSetting& setting) const;
  double workers_supply(const WhatIfSetting& setting, double seconds) const;
  double warm_supply(const WhatIfSetting& setting) const;
  double overlap_at(double cached) const;
  double cold_supply(const WhatIfSetting& setting, double warm) const;
  double made_supply(const WhatIfSetting& setting, double warm) const;
  double stall_at(const WhatIfSetting& setting, double training) const;

  MeasuredStep measured_;
  /// The time of a batch with its bytes in memory and more cores than needed.
  double unhindered_supply_ = 0;
  double warm_overlap_ = 0;
  double cold_overlap_ = 0;
};

}  // namespace leat
