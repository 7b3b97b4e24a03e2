// The options of a reader: plain values with defaults.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/ids.h"
#include "leat/engine/shuffle_choice.h"

namespace leat {

/// The way to an object store. Empty values come from the environment, then
/// from the AWS configuration files, as in the AWS tools.
struct ReaderStorage {
  std::string endpoint_url = {};  ///< For an S3 store that is not AWS.
  std::string region = {};
  std::string profile = {};
  /// Further options of the URL's scheme, by name.
  std::map<std::string, std::string> of_scheme = {};
  bool no_sign_request = false;  ///< For public buckets.
  bool requester_pays = false;   ///< You pay for requests and bytes.
  /// How many seconds an outage of the store is ridden out.
  double patience_seconds = 300;
};

/// A cache for samples that were fetched once. All sizes are for this node,
/// whose ranks share them.
struct ReaderCache {
  bool is_auto = false;         ///< Chooses sizes by the free memory and disk.
  std::uint64_t ram_bytes = 0;  ///< 0: no tier in memory.
  std::string disk = {};        ///< A folder; empty: no tier on disk.
  /// The most bytes in that folder; nullopt: half of the free space.
  std::optional<std::uint64_t> disk_limit_bytes = std::nullopt;
  /// Shares the tiers with other jobs on this node that read the same data.
  bool is_shared = false;
};

/// One of the two batch sizes has to be given.
struct ReaderOptions {
  std::uint64_t batch_size = 0;         ///< Samples a step of each rank.
  std::uint64_t global_batch_size = 0;  ///< Samples a step of all ranks.
  /// The place of this process; nullopt asks the launcher's environment.
  std::optional<Rank> rank = std::nullopt;

  ShuffleChoice shuffle = ShuffleChoice::kNone;
  std::uint64_t seed = 0;  ///< Determines the order and each random op.
  /// nullopt: an incomplete last step is dropped if shuffled, else kept.
  std::optional<bool> drop_last = std::nullopt;
  /// Fills the last step with the epoch's first samples.
  bool pad = false;
  /// Ranks may end an epoch one batch apart.
  bool join = false;
  /// How many epochs there will be; nothing is fetched past them.
  std::optional<std::uint64_t> epochs = std::nullopt;

  /// In the format of `leat bench --ops`: "decode_image,resize:224/224".
  std::string ops = {};
  std::vector<std::string> fields = {};  ///< Empty: all of them.
  bool ids = false;                      ///< Adds the fields `index` and `key`.
  /// A good sample replaces a bad one; otherwise a bad one is an error.
  bool substitutes_bad = false;

  /// The most bytes of batches in preparation on this node; nullopt: a quarter
  /// of the memory that this process may use, and at most 2 GiB.
  std::optional<std::uint64_t> memory_bytes = std::nullopt;
  std::size_t threads = 0;        ///< On this node; 0: as many as its CPUs.
  std::size_t max_in_flight = 0;  ///< Requests, on this node; 0: 128.
  std::optional<ReaderCache> cache = std::nullopt;  ///< nullopt keeps nothing.
  std::string trace = {};  ///< A file for a trace for Perfetto; empty: none.
  ReaderStorage storage = {};
};

}  // namespace leat
