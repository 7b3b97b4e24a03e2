// Opens a store by its URL: the one place that knows every driver by name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/metrics/metrics.h"
#include "leat/runtime/retry_policy.h"
#include "leat/store/diagnosis.h"
#include "leat/store/layers/derived_store.h"
#include "leat/store/layers/limited_store.h"
#include "leat/store/layers/request_pace.h"
#include "leat/store/store.h"

namespace leat {

/// An option that only some schemes have. It is a text.
struct SchemeOption {
  /// As Python has it: "region" is --region on the command line.
  std::string_view name;
  std::string_view doc;  ///< For help.
};

/// The options of all schemes, each once, in the order of the schemes.
std::vector<SchemeOption> scheme_options();

/// The way to a store. Empty options come from the environment, then from the
/// profile files; each driver uses those that concern it.
struct StoreOptions {
  std::string endpoint_url;
  /// Those that only some schemes have, by name: see scheme_options().
  std::map<std::string, std::string, std::less<>> of_scheme = {};
  bool no_sign_request = false;
  /// The caller pays for requests and bytes, in buckets that demand it.
  bool requester_pays = false;
  /// A command that prints credentials for `--profile NAME`, for profiles with
  /// SSO or MFA; empty: LEAT_CREDENTIAL_HELPER. Python's command runs botocore.
  std::string credential_helper;
  /// A PEM file of certificates to trust; empty for the system's.
  std::string ca_bundle;
  /// The number of reads in flight.
  std::size_t max_in_flight = 128;
  /// The most that its window may hold later; 0: the same.
  std::size_t most_in_flight = 0;
  std::size_t io_threads = 2;
  /// Tries in all; 0: AWS_MAX_ATTEMPTS, or else as many as `patience` allows.
  std::uint32_t max_attempts = 0;
  /// How long an outage of the store is ridden out.
  Nanoseconds patience = RetryOptions{}.patience;
  /// No read is sent a second time while the first is under way.
  bool no_hedge = false;
  /// The seed of the jitter between tries; nullopt draws one.
  std::optional<std::uint64_t> seed;
  /// Makes the objects whose keys describe how to derive them
  /// (derived_store.h); null: there are none.
  std::shared_ptr<const Derivation> derivation = nullptr;
  /// The memory that these objects may take.
  std::uint64_t derived_bytes = 256 << 20;
  /// Reads the files of several stores; null: each store has its own threads.
  std::shared_ptr<Executor> file_readers = nullptr;

  /// An option of a scheme; empty if it is not given.
  std::string option_of_scheme(std::string_view name) const;

  friend bool operator==(const StoreOptions&, const StoreOptions&) = default;
};

/// A week: nobody waits for longer.
inline constexpr double kMostPatienceSeconds = 7 * 24 * 3600;

class CachedStore;

struct OpenedStore {
  std::unique_ptr<Store> store;
  LimitedStore* limited = nullptr;  ///< Its window; lives in `store`.
  /// The pace of requests to the service; never null. Lives on after `store`.
  std::shared_ptr<const RequestPace> pace;
  /// Its tiers, if wrap_in_cache() has made any; lives in `store`.
  CachedStore* cached = nullptr;
  std::string url;  ///< As given, without credentials.
  /// The prefix of the dataset's keys: see key_in_store().
  std::string prefix;
  /// Identifies the place on this machine: the URL, and the endpoint if there
  /// may be several. A cache distinguishes stores by it.
  std::string identity;
  /// The endpoint, if there may be several: keys and url_of() do not tell them
  /// apart. Never holds credentials.
  std::string endpoint;
  /// See provider_at(); nullopt: files of this machine.
  std::optional<std::string> provider;
};

/// Opens the URL of a known scheme, or a path, with retries and a window of
/// reads in flight around it. Sends no request.
///
/// `metrics` may be null; otherwise it must outlive the store.
/// Errors: as parse_url() and resolve_s3_settings()
Result<OpenedStore> open_store(std::string_view url,
                               const StoreOptions& options, const Env& env,
                               Metrics* metrics);

/// The place of one of several datasets.
struct StorePlace {
  std::string url;
  StoreOptions options;
};

/// Opens several places as one store: its keys begin with joined_prefix();
/// window, I/O threads and retries are those of the first place. Sends nothing.
///
/// REQUIRES: at least one place. Errors: as open_store().
Result<OpenedStore> open_joined_store(std::span<const StorePlace> places,
                                      const Env& env, Metrics* metrics);

/// A URL split before its last part. A bare name lies in ".".
struct ObjectUrl {
  std::string_view folder = {};
  std::string_view name = {};
};
ObjectUrl split_object_url(std::string_view url);

/// Reads a whole object by its URL, for small objects. Blocks.
///
/// Errors: as open_store(), Store::read; kResourceExhausted past `most_bytes`
Result<Buffer> read_url(std::string_view url, const StoreOptions& options,
                        std::uint64_t most_bytes, const Env& env,
                        std::stop_token stop);

/// The facts that a user should know about access to `url`: the identity that
/// is used, and its source. Empty if there is nothing to tell. Blocks: requests
/// the credentials.
///
/// Errors: as parse_url()
Result<std::vector<Diagnosis>> diagnose_access(std::string_view url,
                                               const StoreOptions& options,
                                               const Env& env,
                                               const std::stop_token& stop);

}  // namespace leat
