#include "leat/agent/wire/messages.h"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "leat/agent/wire/job_trace_json.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::size_t kMostLinesBytes = 4 * kMostLineBytes;

template <class Message, class Value>
struct Key {
  const char* name;
  Value Message::*field;
};

constexpr std::array kRates = {
    Key<WireRates, double>{"elapsed_seconds", &WireRates::elapsed_seconds},
    Key<WireRates, double>{"samples", &WireRates::samples},
    Key<WireRates, double>{"training_seconds", &WireRates::training_seconds},
    Key<WireRates, double>{"reads", &WireRates::reads},
    Key<WireRates, double>{"read_seconds", &WireRates::read_seconds},
    Key<WireRates, double>{"tasks", &WireRates::tasks},
    Key<WireRates, double>{"busy_seconds", &WireRates::busy_seconds},
    Key<WireRates, double>{"threads", &WireRates::threads},
    Key<WireRates, double>{"in_flight", &WireRates::in_flight}};
constexpr std::array kWhereKnown = {
    Key<WireRates, std::optional<double>>{"kept_bytes", &WireRates::kept_bytes},
    Key<WireRates, std::optional<double>>{"saved_seconds",
                                          &WireRates::saved_seconds},
    Key<WireRates, std::optional<double>>{"decoded_hits",
                                          &WireRates::decoded_hits}};
constexpr std::array kTexts = {
    Key<WireRegistration, std::string>{"job", &WireRegistration::job},
    Key<WireRegistration, std::string>{"name", &WireRegistration::name},
    Key<WireRegistration, std::string>{"dataset", &WireRegistration::dataset}};
constexpr std::array kSmall = {
    Key<WireRegistration, std::uint32_t>{"rank", &WireRegistration::rank},
    Key<WireRegistration, std::uint32_t>{"world_size",
                                         &WireRegistration::world_size},
    Key<WireRegistration, std::uint32_t>{"local_ranks",
                                         &WireRegistration::local_ranks}};
constexpr std::array kLarge = {
    Key<WireRegistration, std::uint64_t>{"threads", &WireRegistration::threads},
    Key<WireRegistration, std::uint64_t>{"in_flight",
                                         &WireRegistration::in_flight},
    Key<WireRegistration, std::uint64_t>{"ram_bytes",
                                         &WireRegistration::ram_bytes},
    Key<WireRegistration, std::uint64_t>{"disk_bytes",
                                         &WireRegistration::disk_bytes},
    Key<WireRegistration, std::uint64_t>{"dataset_samples",
                                         &WireRegistration::dataset_samples}};
constexpr std::array kCounts = {
    Key<Share, std::optional<std::size_t>>{"threads", &Share::threads},
    Key<Share, std::optional<std::size_t>>{"in_flight", &Share::in_flight}};
constexpr std::array kAmounts = {
    Key<Share, std::optional<std::uint64_t>>{"bytes_per_second",
                                             &Share::bytes_per_second},
    Key<Share, std::optional<std::uint64_t>>{"ram_bytes", &Share::ram_bytes},
    Key<Share, std::optional<std::uint64_t>>{"disk_bytes", &Share::disk_bytes}};

// Unbounded values are left out.
constexpr std::array kPaces = {Key<Pace, double>{"offered", &Pace::offered},
                               Key<Pace, double>{"reached", &Pace::reached},
                               Key<Pace, double>{"ceiling", &Pace::ceiling}};

Error wrong(const std::string& what) {
  return {ErrorCode::kInvalidArgument,
          "a line between a loader and its agent: " + what};
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Json> parse(std::string_view line) {
  // Depth is at most the line's length, which is bounded, and the parser does
  // not recurse.
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return wrong("is not JSON");
  if (!json.is_object()) return wrong("is not an object");
  return json;
}

/// A whole number that `Value` holds, at least 0.
template <class Value>
Result<Value> whole_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return wrong(std::string(key) + " is missing");
  if (!found->is_number_unsigned() || found->template get<std::uint64_t>() >
                                          std::numeric_limits<Value>::max()) {
    return wrong(std::string(key) + " must be a whole number");
  }
  return found->template get<Value>();
}

Result<std::vector<std::string>> read_buckets(const Json& object) {
  std::vector<std::string> read;
  const auto found = object.find("buckets");
  if (found == object.end()) return read;
  if (!found->is_array() || found->size() > kMostBuckets) {
    return wrong("buckets must be a list of a few texts");
  }
  for (const Json& bucket : *found) {
    if (!bucket.is_string()) return wrong("buckets must be texts");
    read.push_back(bucket.get<std::string>().substr(0, kMostNameBytes));
  }
  return read;
}

Result<WireRegistration> read_registration(const Json& object) {
  WireRegistration read;
  for (const auto& key : kTexts) {
    const auto found = object.find(key.name);
    if (found == object.end() || !found->is_string()) {
      return wrong(std::string(key.name) + " must be a text");
    }
    read.*key.field = found->get<std::string>().substr(0, kMostNameBytes);
  }
  for (const auto& key : kSmall) {
    LEAT_TRY(read.*key.field, whole_of<std::uint32_t>(object, key.name));
  }
  for (const auto& key : kLarge) {
    LEAT_TRY(read.*key.field, whole_of<std::uint64_t>(object, key.name));
  }
  if (object.contains("epochs")) {
    LEAT_TRY(read.epochs, whole_of<std::uint64_t>(object, "epochs"));
  }
  if (const auto found = object.find("shared_cache"); found != object.end()) {
    if (!found->is_string()) return wrong("shared_cache must be a text");
    read.shared_cache = found->get<std::string>().substr(0, kMostNameBytes);
  }
  LEAT_TRY(read.buckets, read_buckets(object));
  if (read.threads == 0 || read.in_flight == 0 || read.local_ranks == 0 ||
      read.world_size == 0) {
    return wrong(
        "threads, in_flight, local_ranks and world_size are at least 1");
  }
  return read;
}

Result<double> amount_of(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) {
    return wrong(key + " must be a number");
  }
  const auto amount = found->get<double>();
  if (!std::isfinite(amount) || amount < 0) {
    return wrong(key + " must be at least 0");
  }
  return amount;
}

Json json_of(const Pace& pace) {
  Json object = Json::object();
  for (const auto& key : kPaces) {
    if (std::isfinite(pace.*key.field)) object[key.name] = pace.*key.field;
  }
  return object;
}

/// Nullopt where there is none.
Result<std::optional<Pace>> read_pace(const Json& message, const char* name) {
  const auto found = message.find(name);
  if (found == message.end()) return std::optional<Pace>();
  if (!found->is_object()) return wrong(std::string(name) + " is no object");
  Pace read;
  for (const auto& key : kPaces) {
    if (!found->contains(key.name)) continue;
    LEAT_TRY(read.*key.field, amount_of(*found, key.name));
  }
  return std::optional<Pace>(read);
}

Result<WireRates> read_rates(const Json& object) {
  WireRates read;
  for (const auto& key : kRates) {
    LEAT_TRY(read.*key.field, amount_of(object, key.name));
  }
  for (const JobCounter* counter : job_counters()) {
    if (!counter->is_required && !object.contains(counter->name)) continue;
    LEAT_TRY(read.totals[counter], amount_of(object, counter->name));
  }
  for (const auto& key : kWhereKnown) {
    if (!object.contains(key.name)) continue;
    LEAT_TRY(read.*key.field, amount_of(object, key.name));
  }
  if (object.contains("epochs")) {
    LEAT_TRY(read.epochs, amount_of(object, "epochs"));
  }
  const auto stalls = object.find("stalls");
  if (stalls == object.end() || !stalls->is_object() ||
      stalls->size() > kMostStalls) {
    return wrong("stalls must be an object of a few numbers");
  }
  for (const auto& [cause, unused] : stalls->items()) {
    if (cause.size() > kMostNameBytes) return wrong("a stall's name is long");
    LEAT_TRY(read.stalls[cause], amount_of(*stalls, cause));
  }
  return read;
}

Result<Share> read_share(const Json& object) {
  Share read;
  for (const auto& key : kCounts) {
    if (!object.contains(key.name)) continue;
    LEAT_TRY(read.*key.field, whole_of<std::size_t>(object, key.name));
  }
  for (const auto& key : kAmounts) {
    if (!object.contains(key.name)) continue;
    LEAT_TRY(read.*key.field, whole_of<std::uint64_t>(object, key.name));
  }
  if (read.threads == 0u || read.in_flight == 0u) {
    return wrong("threads and in_flight are at least 1");
  }
  return read;
}

}  // namespace

std::string line_of(const WireRegistration& registration) {
  Json object = Json::object();
  for (const auto& key : kTexts) {
    object[key.name] = (registration.*key.field).substr(0, kMostNameBytes);
  }
  for (const auto& key : kSmall) object[key.name] = registration.*key.field;
  for (const auto& key : kLarge) object[key.name] = registration.*key.field;
  if (registration.epochs > 0) object["epochs"] = registration.epochs;
  if (!registration.shared_cache.empty()) {
    object["shared_cache"] =
        registration.shared_cache.substr(0, kMostNameBytes);
  }
  for (const std::string& bucket : registration.buckets) {
    if (object["buckets"].size() == kMostBuckets) break;
    object["buckets"].push_back(bucket.substr(0, kMostNameBytes));
  }
  return text_of({{"leat", kVersion}, {"register", std::move(object)}});
}

std::string line_of(const WireRates& rates) {
  Json object = Json::object();
  for (const auto& key : kRates) object[key.name] = rates.*key.field;
  for (const JobCounter* counter : job_counters()) {
    if (counter->is_required || rates.totals.contains(counter)) {
      object[counter->name] = total_of(rates.totals, *counter);
    }
  }
  for (const auto& key : kWhereKnown) {
    if (rates.*key.field) object[key.name] = *(rates.*key.field);
  }
  object["epochs"] = rates.epochs;
  object["stalls"] = rates.stalls;
  Json message = {{"rates", std::move(object)}};
  if (rates.elsewhere) message["elsewhere"] = json_of(*rates.elsewhere);
  return text_of(message);
}

std::string line_of(const Share& share, const std::optional<Pace>& pace) {
  Json object = Json::object();
  for (const auto& key : kCounts) {
    if (share.*key.field) object[key.name] = *(share.*key.field);
  }
  for (const auto& key : kAmounts) {
    if (share.*key.field) object[key.name] = *(share.*key.field);
  }
  Json message = {{"share", std::move(object)}};
  if (pace) message["pace"] = json_of(*pace);
  return text_of(message);
}

std::string line_of(const JobTrace& trace) {
  return text_of({{"trace", json_of(trace)}});
}

std::string trace_request_line() { return text_of({{"trace", true}}); }

std::string error_line(std::string_view error) {
  return text_of({{"error", std::string(error.substr(0, kMostNameBytes))}});
}

Result<LoaderMessage> parse_loader_line(std::string_view line) {
  LEAT_TRY(const Json json, parse(line));
  LoaderMessage message;
  if (const auto found = json.find("register"); found != json.end()) {
    const auto version = json.find("leat");
    if (version == json.end() || *version != kVersion) {
      return wrong("is of another version of Leat: run the same on both sides");
    }
    if (!found->is_object()) return wrong("register must be an object");
    LEAT_TRY(message.registration, read_registration(*found));
    return message;
  }
  if (const auto trace = json.find("trace"); trace != json.end()) {
    LEAT_TRY(message.trace, read_trace(*trace));
    return message;
  }
  const auto found = json.find("rates");
  if (found == json.end() || !found->is_object()) {
    return wrong("has neither register, rates nor trace");
  }
  LEAT_TRY(message.rates, read_rates(*found));
  LEAT_TRY(message.rates->elsewhere, read_pace(json, "elsewhere"));
  return message;
}

Result<AgentMessage> parse_agent_line(std::string_view line) {
  LEAT_TRY(const Json json, parse(line));
  AgentMessage message;
  if (const auto found = json.find("error");
      found != json.end() && found->is_string()) {
    message.error = found->get<std::string>().substr(0, kMostNameBytes);
    return message;
  }
  if (const auto trace = json.find("trace"); trace != json.end()) {
    if (*trace != true) return wrong("trace must be true");
    message.wants_trace = true;
    return message;
  }
  const auto found = json.find("share");
  if (found == json.end() || !found->is_object()) {
    return wrong("has neither share, trace nor error");
  }
  LEAT_TRY(message.share, read_share(*found));
  LEAT_TRY(message.pace, read_pace(json, "pace"));
  return message;
}

Result<void> LineReader::add(std::string_view bytes) {
  bytes_.erase(0, std::exchange(begin_, 0));
  bytes_.append(bytes);
  const std::size_t end = bytes_.rfind('\n');
  const std::size_t open =
      end == std::string::npos ? bytes_.size() : bytes_.size() - end - 1;
  if (open > kMostLineBytes || bytes_.size() > kMostLinesBytes) {
    return wrong("is too long");
  }
  return {};
}

std::optional<std::string> LineReader::next() {
  const std::size_t end = bytes_.find('\n', begin_);
  if (end == std::string::npos) return std::nullopt;
  std::string line = bytes_.substr(begin_, end - begin_);
  begin_ = end + 1;
  return line;
}

}  // namespace leat
