// The options of a loader as flags: one spelling with Python.
#pragma once
#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/engine/loader_options.h"
#include "leat/engine/stores.h"

namespace leat {

/// The user's words; loader_options() and store_options() interpret them.
///
/// Lifetime: CLI11 writes into it while it parses, so it outlives the parse.
struct LoaderFlags {
  std::uint64_t global_batch_size = 256;
  std::uint64_t batch_size = 0;
  std::string shuffle = "true";
  std::uint64_t seed = 0;
  std::optional<std::uint32_t> shuffle_window;
  std::string locality = "none";
  std::optional<bool> drop_last;
  std::string ops;
  std::string fields;
  std::string on_error = "raise";
  std::string memory;  // Empty: chosen.
  std::size_t threads = 0;
  std::size_t max_in_flight = 0;
  std::uint64_t fetch_size = 0;  // 0: it looks ahead by itself.
  std::uint64_t queue_threshold = 0;
  std::string cache;             // "auto", or empty.
  std::string cache_ram;         // Empty: none.
  std::string cache_disk;        // Empty: none.
  std::string cache_disk_limit;  // Empty: chosen.
  std::string cache_policy;      // Empty: belady.
  std::uint64_t cache_window = 0;
  std::string cache_placement;  // Empty: any.
  std::string cache_form;       // Empty: as CacheOptions has it.
  bool cache_shared = false;
  std::uint64_t cache_first_within = 0;
  std::vector<std::string> cache_peers;
  std::string cache_peer_placement;  // Empty: key.
  std::string cache_peer_patience;   // Empty: 100 ms.
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> world_size;
  bool has_no_hash = false;
  std::string trace;
  std::string order_log;
  bool has_no_tune = false;
  std::string tune_trace;

  void add_to(CLI::App& app);
  Result<LoaderOptions> loader_options() const;

 private:
  Result<std::optional<CacheOptions>> cache_options() const;
};

/// `--endpoint-url`, `--no-sign-request`, as the AWS command line spells them;
/// `--requester-pays`, as mount-s3 does; and the options of schemes.
struct StoreFlags {
  std::string endpoint_url;
  std::map<std::string, std::string, std::less<>> of_scheme;
  bool no_sign_request = false;
  bool requester_pays = false;
  double patience_seconds = 300;

  void add_to(CLI::App& app);
  StoreOptions store_options() const;
};

}  // namespace leat
