#include "leat/engine/stores.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/dataset/catalogue.h"
#include "leat/engine/ledger.h"
#include "leat/engine/scheme.h"
#include "leat/runtime/executor.h"
#include "leat/runtime/retry_policy.h"
#include "leat/store/file/file_store.h"
#include "leat/store/layers/hedged_store.h"
#include "leat/store/layers/joined_store.h"
#include "leat/store/layers/limited_store.h"
#include "leat/store/layers/paced_store.h"
#include "leat/store/layers/retrying_store.h"
#include "leat/store/url.h"

namespace leat {
namespace {

const Scheme* scheme_named(std::string_view name) {
  const auto all = schemes();
  const auto found = std::ranges::find(all, name, &Scheme::name);
  return found == all.end() ? nullptr : *found;
}

Result<Driver> open_driver(const Url& url, const StoreOptions& options,
                           const Env& env, Metrics* metrics) {
  const Scheme* const scheme = scheme_named(url.scheme);
  LEAT_CHECK(scheme != nullptr);  // A scheme belongs in both lists of schemes.
  return scheme->open(url, options, env, metrics);
}

std::uint64_t draw_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

/// Until when a service asks for no request: the last of those of all places.
std::function<TimePoint()> not_before_of(const Driver& driver) {
  std::vector<std::shared_ptr<const EndpointNotes>> all = driver.joined_notes;
  all.emplace_back(driver.notes);
  std::erase(all, nullptr);
  return [all = std::move(all)] {
    TimePoint last;
    for (const auto& notes : all) last = std::max(last, notes->not_before());
    return last;
  };
}

/// Files throttle nobody.
std::shared_ptr<RequestPace> pace_of(const Driver& driver) {
  if (driver.service.empty()) return std::make_shared<RequestPace>();
  return std::make_shared<RequestPace>(pace_folder(), driver.service);
}

/// Puts one window and one set of retries around any driver.
OpenedStore wrap(Driver driver, const StoreOptions& options, Metrics* metrics) {
  RetryOptions retries;
  retries.patience = options.patience;
  const std::uint32_t attempts =
      options.max_attempts != 0 ? options.max_attempts : driver.max_attempts;
  if (attempts != 0) retries.max_attempts = attempts;
  const auto polite = driver.is_plain_http ? driver.notes : nullptr;
  OpenedStore opened;
  auto pace = pace_of(driver);
  auto paced =
      std::make_unique<PacedStore>(std::move(driver.store), metrics, pace);
  opened.pace = std::move(pace);
  // The window lies above; it is known once the stack is whole.
  const auto window = std::make_shared<std::atomic<LimitedStore*>>();
  auto hedged = std::make_unique<HedgedStore>(
      std::move(paced),
      [window, pace = opened.pace,
       hedges = !options.no_hedge](std::size_t duplicates) {
        const LimitedStore* const limited = *window;
        return hedges && !pace->holds(SteadyClock().now()) &&
               limited != nullptr && limited->has_room_for(duplicates);
      },
      metrics);
  auto not_before = not_before_of(driver);
  auto retrying = std::make_unique<RetryingStore>(
      std::move(hedged), retries, options.seed.value_or(draw_seed()), metrics,
      std::move(driver.notes), std::move(not_before));
  auto limited = std::make_unique<LimitedStore>(
      std::move(retrying), options.max_in_flight, metrics, polite);
  opened.limited = limited.get();
  *window = opened.limited;
  opened.store = std::move(limited);
  if (options.derivation != nullptr) {
    DerivedStoreOptions making;
    making.most_bytes = options.derived_bytes;
    opened.store = std::make_unique<DerivedStore>(std::move(opened.store),
                                                  options.derivation, making);
  }
  opened.prefix = std::move(driver.prefix);
  opened.identity = std::move(driver.identity);
  opened.endpoint = std::move(driver.endpoint);
  opened.provider = std::move(driver.provider);
  return opened;
}

Result<void> check(const StoreOptions& options) {
  if (options.max_in_flight == 0 || options.io_threads == 0) {
    return invalid("max_in_flight and io_threads must be at least 1");
  }
  const std::vector<SchemeOption> known = scheme_options();
  for (const auto& [name, value] : options.of_scheme) {
    if (std::ranges::find(known, name, &SchemeOption::name) != known.end()) {
      continue;
    }
    std::string names;
    for (const SchemeOption& option : known) {
      names += names.empty() ? "" : ", ";
      names += option.name;
    }
    return invalid("no scheme has an option '{}'; there are {}", name, names);
  }
  return {};
}

/// Lists and writes are not limited by the window, and need connections too.
constexpr std::size_t kConnectionsBesideReads = 32;

}  // namespace

std::vector<SchemeOption> scheme_options() {
  std::vector<SchemeOption> all;
  for (const Scheme* scheme : schemes()) {
    for (const SchemeOption& option : scheme->options) {
      if (std::ranges::find(all, option.name, &SchemeOption::name) ==
          all.end()) {
        all.push_back(option);
      }
    }
  }
  return all;
}

std::string StoreOptions::option_of_scheme(std::string_view name) const {
  const auto found = of_scheme.find(name);
  return found == of_scheme.end() ? std::string() : found->second;
}

Driver driver_at(const Url& url, std::string prefix, std::string endpoint) {
  Driver driver;
  driver.prefix = std::move(prefix);
  driver.identity = url.text() + "\n" + endpoint;
  driver.service = url.bucket() + " " + endpoint + "\n";
  driver.provider = provider_at(endpoint);
  driver.notes = notes_at(endpoint);
  driver.notes->endpoint = endpoint;
  driver.endpoint = std::move(endpoint);
  return driver;
}

std::shared_ptr<EndpointNotes> notes_at(const std::string& endpoint) {
  // The process's: a loader that is opened in an outage must know what another
  // one has heard. No store outlives it, since each holds what it uses of it.
  static KnownEndpoints endpoints;
  auto notes = std::make_shared<EndpointNotes>();
  notes->known = endpoints.of(endpoint, SteadyClock().now());
  return notes;
}

HttpClientOptions http_options(const StoreOptions& options,
                               std::string ca_bundle,
                               std::shared_ptr<EndpointNotes> notes) {
  HttpClientOptions http;
  http.io_threads = options.io_threads;
  http.max_in_flight = std::max(options.max_in_flight, options.most_in_flight) +
                       kConnectionsBesideReads;
  http.ca_bundle = std::move(ca_bundle);
  http.notes = std::move(notes);
  return http;
}

Result<OpenedStore> open_store(std::string_view url,
                               const StoreOptions& options, const Env& env,
                               Metrics* metrics) {
  LEAT_TRY(const Url parsed, parse_url(url));
  LEAT_TRY_VOID(check(options));
  LEAT_TRY(Driver driver, open_driver(parsed, options, env, metrics));
  OpenedStore opened = wrap(std::move(driver), options, metrics);
  opened.url = parsed.text();
  return opened;
}

namespace {

/// A bucket that several places lie in, with the store that reads it.
struct SharedBucket {
  std::string scheme;
  std::string authority;
  StoreOptions options;
  std::shared_ptr<Store> store;
};

/// The places of one bucket have one client, and all files one set of threads:
/// many places take the threads and the connections of one.
class PlaceOpener {
 public:
  PlaceOpener(const Env& env, Metrics* metrics)
      : env_(env), metrics_(metrics) {}

  Result<JoinedStore::Part> open(const StorePlace& place, Driver& joined) {
    LEAT_TRY_VOID(check(place.options));
    LEAT_TRY(const Url url, parse_url(place.url));
    StoreOptions options = place.options;
    options.file_readers = readers_;
    options.derivation = nullptr;  // Objects are derived above the join.
    for (const SharedBucket& bucket : buckets_) {
      if (bucket.scheme != url.scheme || bucket.authority != url.authority ||
          bucket.options != options) {
        continue;
      }
      joined.identity += url.text() + "\n";
      return JoinedStore::Part{bucket.store, url.path};
    }
    LEAT_TRY(Driver driver, open_driver(url, options, env_, metrics_));
    add(driver, joined);
    std::shared_ptr<Store> store = std::move(driver.store);
    if (!url.bucket().empty() && driver.prefix == url.path) {
      buckets_.push_back({url.scheme, url.authority, options, store});
    }
    return JoinedStore::Part{std::move(store), std::move(driver.prefix)};
  }

 private:
  void add(const Driver& driver, Driver& joined) {
    joined.identity += driver.identity + "\n";
    joined.endpoint += driver.endpoint + "\n";
    // Places of one bucket are throttled as the bucket.
    if (joined.service.find(driver.service) == std::string::npos) {
      joined.service += driver.service;
    }
    joined.max_attempts = std::max(joined.max_attempts, driver.max_attempts);
    // Requests to several providers are not counted separately.
    joined.provider =
        !has_some_ || joined.provider == driver.provider ? driver.provider : "";
    has_some_ = true;
    joined.joined_notes.push_back(driver.notes);
  }

  const Env& env_;
  Metrics* const metrics_;
  const std::shared_ptr<Executor> readers_ =
      std::make_shared<Executor>("leat-file", FileStoreOptions::kUsualThreads);
  std::vector<SharedBucket> buckets_;
  bool has_some_ = false;
};

/// Makes the objects of each place with that place's function: what a key's
/// part means is known to the function of its own dataset only.
class DerivationByPlace final : public Derivation {
 public:
  explicit DerivationByPlace(std::span<const StorePlace> places) {
    for (const StorePlace& place : places) {
      of_places_.push_back(place.options.derivation);
    }
  }

  bool makes_any() const {
    return std::ranges::any_of(
        of_places_, [](const auto& made) { return made != nullptr; });
  }

  Result<Buffer> derive(const DerivedKey& key, std::span<const std::byte> notes,
                        std::span<const std::byte> bytes) const override {
    // As JoinedStore reads it.
    std::size_t place = 0;
    const char* const begin = key.source.data();
    const auto [end, failed] =
        std::from_chars(begin, begin + key.source.size(), place);
    if (failed != std::errc() || place >= of_places_.size() ||
        of_places_[place] == nullptr) {
      return corrupt("no place of the joined data makes objects of '{}'",
                     key.source);
    }
    return of_places_[place]->derive(key, notes, bytes);
  }

 private:
  std::vector<std::shared_ptr<const Derivation>> of_places_;
};

}  // namespace

Result<OpenedStore> open_joined_store(std::span<const StorePlace> places,
                                      const Env& env, Metrics* metrics) {
  LEAT_CHECK(!places.empty());
  Driver joined;
  std::vector<JoinedStore::Part> parts;
  PlaceOpener opener(env, metrics);
  for (const StorePlace& place : places) {
    LEAT_TRY(JoinedStore::Part part, opener.open(place, joined));
    parts.push_back(std::move(part));
  }
  joined.store = std::make_unique<JoinedStore>(std::move(parts));
  StoreOptions options = places.front().options;
  auto derivation = std::make_shared<const DerivationByPlace>(places);
  options.derivation =
      derivation->makes_any() ? std::move(derivation) : nullptr;
  return wrap(std::move(joined), options, metrics);
}

ObjectUrl split_object_url(std::string_view url) {
  const std::size_t slash = url.rfind('/');
  if (slash == std::string_view::npos) return {.folder = ".", .name = url};
  return {.folder = url.substr(0, slash + 1), .name = url.substr(slash + 1)};
}

Result<Buffer> read_url(std::string_view url, const StoreOptions& options,
                        std::uint64_t most_bytes, const Env& env,
                        std::stop_token stop) {
  const auto [folder, name] = split_object_url(url);
  if (name.empty()) {
    return invalid("{} is a folder; name an object in it", url);
  }
  LEAT_TRY(const OpenedStore opened, open_store(folder, options, env, nullptr));
  return read_object(*opened.store, key_in_store(opened.prefix, name),
                     most_bytes, std::move(stop));
}

Result<std::vector<Diagnosis>> diagnose_access(std::string_view url,
                                               const StoreOptions& options,
                                               const Env& env,
                                               const std::stop_token& stop) {
  LEAT_TRY(const Url parsed, parse_url(url));
  const Scheme* const scheme = scheme_named(parsed.scheme);
  if (scheme == nullptr || scheme->diagnose == nullptr) {
    return std::vector<Diagnosis>();
  }
  return scheme->diagnose(parsed, options, env, stop);
}

}  // namespace leat
