// A scheme of URLs, and the driver that opens them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/engine/stores.h"
#include "leat/metrics/metrics.h"
#include "leat/runtime/retry_policy.h"
#include "leat/store/diagnosis.h"
#include "leat/store/endpoint_notes.h"
#include "leat/store/http/http_client.h"
#include "leat/store/store.h"
#include "leat/store/url.h"

namespace leat {

/// A driver, and what the layers around it need to know about it.
struct Driver {
  std::unique_ptr<Store> store;
  std::string prefix;
  std::string identity;
  std::string endpoint;
  /// Names the service that may throttle: the bucket, and the endpoint if there
  /// may be several. The processes of a node share one pace for each. Empty for
  /// files.
  std::string service;
  std::optional<std::string> provider;
  std::uint32_t max_attempts = 0;  ///< See RetryOptions; 0: not said.
  /// Facts about the server that its client learns; null for files, and for
  /// several places joined.
  std::shared_ptr<EndpointNotes> notes;
  /// Those of each place that is joined; null for files.
  std::vector<std::shared_ptr<const EndpointNotes>> joined_notes{};
  /// It talks to an arbitrary web server, which may bear few connections.
  bool is_plain_http = false;
};

/// A scheme, with its driver. Its URLs' form and ETags: store/url_schemes.cc.
struct Scheme {
  std::string_view name;

  /// Opens a store of its own, without retries or a window. Sends no request.
  Result<Driver> (*open)(const Url& url, const StoreOptions& options,
                         const Env& env, Metrics* metrics) = nullptr;

  /// See diagnose_access(); null: nothing to tell.
  std::vector<Diagnosis> (*diagnose)(const Url& url,
                                     const StoreOptions& options,
                                     const Env& env,
                                     const std::stop_token& stop) = nullptr;

  /// Those that the driver takes by StoreOptions::option_of_scheme(). Python,
  /// the command line and messages go by them.
  std::span<const SchemeOption> options = {};
};

/// All schemes: schemes/schemes.cc.
std::span<const Scheme* const> schemes();

/// A driver for what `url` names at `endpoint`, a URL: all but the store
/// itself, whose client has these notes.
Driver driver_at(const Url& url, std::string prefix, std::string endpoint);

/// Notes for a server at `endpoint`, a URL. They know whether it has lately
/// answered others in this process.
std::shared_ptr<EndpointNotes> notes_at(const std::string& endpoint);

/// The client's options, for a driver that uses HTTP.
HttpClientOptions http_options(const StoreOptions& options,
                               std::string ca_bundle,
                               std::shared_ptr<EndpointNotes> notes);

}  // namespace leat
