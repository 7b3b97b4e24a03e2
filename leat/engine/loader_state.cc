#include "leat/engine/loader_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::array<std::pair<Shuffle, std::string_view>, 5> kShuffles = {
    {{Shuffle::kNone, "none"},
     {Shuffle::kFull, "full"},
     {Shuffle::kBlock, "block"},
     {Shuffle::kStream, "stream"},
     {Shuffle::kDrawn, "drawn"}}};

constexpr std::array<std::pair<DrawnBy, std::string_view>, 3> kMakers = {
    {{DrawnBy::kWeights, "weights"},
     {DrawnBy::kSampler, "sampler"},
     {DrawnBy::kMix, "mix"}}};

std::string_view name_of(const DrawnState& drawn) {
  return kMakers[static_cast<std::size_t>(drawn.by)].second;
}

int version_of(const LoaderState& state) {
  if (state.shuffle == Shuffle::kBlock) return LoaderState::kVersion;
  return state.left_behind ? 2 : 1;
}

Error not_a_state(std::string_view why) {
  return invalid("this is no state of a leat.Loader: {}", why);
}

template <class T>
Error differs(std::string_view what, const T& saved, const T& mine,
              std::string_view remedy) {
  return invalid("the state was saved with {} {}, but this loader has {}; {}",
                 what, saved, mine, remedy);
}

void add_mix(const MixState& mix, nlohmann::ordered_json& json) {
  json["sources"] = mix.sources;
  json["had"] = mix.had;
  if (!mix.shuffle.empty()) json["source_shuffle"] = mix.shuffle;
  const bool has_begun_anew =
      mix.first_epoch != 0 ||
      std::ranges::any_of(mix.begin, [](auto had) { return had != 0; });
  if (!has_begun_anew) return;
  json["first_epoch"] = mix.first_epoch;
  json["begin"] = mix.begin;
}

}  // namespace

std::string_view word_of(Shuffle shuffle) {
  for (const auto& [known, name] : kShuffles) {
    if (known == shuffle) return name;
  }
  return "none";
}

std::string to_json(const LoaderState& state) {
  nlohmann::ordered_json json = {
      {"leat_state", version_of(state)},
      {"epoch", state.epoch},
      {"position", state.position},
      {"seed", state.seed},
      {"global_batch_size", state.global_batch_size},
      {"samples", state.samples.value_or(0)},
      {"catalogue", state.catalogue},
      {"shuffle", std::string(word_of(state.shuffle))},
      {"shuffle_window", state.shuffle_window}};
  if (!state.samples) json["samples"] = nullptr;
  if (state.drawn) {
    json["drawn_by"] = std::string(name_of(*state.drawn));
    json["drawn"] = state.drawn->digest;
    json["samples_per_epoch"] = state.drawn->samples_per_epoch;
    if (state.drawn->by == DrawnBy::kMix) add_mix(state.drawn->mix, json);
  }
  if (state.left_behind) {
    json["left_behind"] = *state.left_behind;
    json["rank"] = state.rank.rank;
    json["world_size"] = state.rank.world_size;
  }
  return json.dump();
}

namespace {

/// Nullopt if it is not a list of whole numbers.
std::optional<std::vector<std::uint64_t>> numbers_in(
    const nlohmann::json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const nlohmann::json& one : list) {
    if (!one.is_number_unsigned()) return std::nullopt;
    numbers.push_back(one.get<std::uint64_t>());
  }
  return numbers;
}

/// The name of an entry that is missing or of another type; empty: none is.
std::string take_mix(const nlohmann::json& json, MixState& mix) {
  const auto sources = json.find("sources");
  if (sources == json.end() || !sources->is_array()) return "sources";
  for (const nlohmann::json& name : *sources) {
    if (!name.is_string()) return "sources";
    mix.sources.push_back(name.get<std::string>());
  }
  const auto numbers = [&](const char* name, std::vector<std::uint64_t>& into) {
    const auto found = json.find(name);
    const auto list = found == json.end() ? std::nullopt : numbers_in(*found);
    if (!list || list->size() != mix.sources.size()) return false;
    into = *list;
    return true;
  };
  if (!numbers("had", mix.had)) return "had";
  const auto shuffle = json.find("source_shuffle");
  if (shuffle != json.end()) {
    if (!shuffle->is_string()) return "source_shuffle";
    mix.shuffle = shuffle->get<std::string>();
  }
  mix.begin.assign(mix.sources.size(), 0);
  const auto first = json.find("first_epoch");
  if (first == json.end()) return "";
  if (!first->is_number_unsigned()) return "first_epoch";
  mix.first_epoch = first->get<std::uint64_t>();
  return numbers("begin", mix.begin) ? "" : "begin";
}

std::string_view order_of(const LoaderState& state) {
  if (state.drawn) return name_of(*state.drawn);
  return word_of(state.shuffle);
}

Result<void> check_mix(const DrawnState& saved, const DrawnState& mine) {
  if (!saved.mix.shuffle.empty() && saved.mix.shuffle != mine.mix.shuffle) {
    return differs("sources in shuffle", saved.mix.shuffle, mine.mix.shuffle,
                   "give the same shuffle=");
  }
  if (saved.digest != mine.digest) {
    return differs("the mix", saved.digest, mine.digest,
                   "give the same sources, weights and options, or go on from "
                   "where each source stopped");
  }
  if (saved.mix.first_epoch != mine.mix.first_epoch ||
      saved.mix.begin != mine.mix.begin) {
    return differs("a mix that began with epoch", saved.mix.first_epoch,
                   mine.mix.first_epoch,
                   "begin it with the same epoch, and each source with the "
                   "same sample");
  }
  return {};
}

Result<void> check_drawn(const DrawnState& saved, const DrawnState& mine) {
  if (saved.by == DrawnBy::kSampler) return {};  // It is given later.
  if (saved.by == DrawnBy::kMix) return check_mix(saved, mine);
  if (saved.digest != mine.digest) {
    return differs("weights", saved.digest, mine.digest,
                   "give the same weights=");
  }
  if (saved.samples_per_epoch != mine.samples_per_epoch) {
    return differs("samples_per_epoch", saved.samples_per_epoch,
                   mine.samples_per_epoch, "give the same num_samples=");
  }
  return {};
}

/// The state of one rank can be continued by that rank alone.
Result<void> check_rank(const LoaderState& saved, const LoaderState& mine) {
  const auto name = [](Rank rank) {
    return fmt::format("{} of {}", rank.rank, rank.world_size);
  };
  if (saved.rank != mine.rank) {
    return differs("samples delivered out of their order on rank",
                   name(saved.rank), name(mine.rank),
                   "with first_within= save and load the state of each rank, "
                   "or save at the end of an epoch");
  }
  if (saved.rank.world_size != 1 &&
      saved.global_batch_size != mine.global_batch_size) {
    return differs("samples delivered out of their order and a global batch of",
                   saved.global_batch_size, mine.global_batch_size,
                   "give the same global_batch_size=");
  }
  return {};
}

/// An epoch that has only begun may go on in another order.
Result<void> check_order(const LoaderState& state, std::uint64_t version) {
  if (state.shuffle != Shuffle::kBlock || state.position == 0 ||
      version >= LoaderState::kVersion) {
    return {};
  }
  return invalid(
      "this state is of version {}, whose block shuffle had an order that this "
      "leat does not make: to continue it would repeat some samples and lose "
      "others; end the epoch with the leat that saved it, or begin one with "
      "set_epoch()",
      version);
}

/// The reason why the data cannot be what it was, and a way on.
std::string changed(const LoaderState& saved, EarlierData earlier) {
  const std::string_view why =
      earlier == EarlierData::kSomeIsKept
          ? "the cache folder of this machine keeps the last four catalogues "
            "that a place had, and this state's is not among them"
          : "no earlier catalogue is kept of Parquet files, MDS, LitData, "
            "Megatron, arrays, sound, video and tables, of what select, split, "
            "filter, concat and several places make, or of shards without an "
            "index";
  const std::string_view but =
      earlier == EarlierData::kSomeIsKept
          ? ""
          : "; tables, MDS, LitData and Megatron are read again all the same "
            "if the table or the index has changed";
  return fmt::format(
      "the data has changed since, or is another dataset, and {}. To go on "
      "with the data of now, call set_epoch({}) in place of "
      "load_state_dict(); to resume within an epoch while data changes, open "
      "the data with refresh=\"never\", which keeps to one catalogue{}",
      why, saved.epoch, but);
}

}  // namespace

Result<LoaderState> parse_state(std::string_view text) {
  const nlohmann::json json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return not_a_state("it is not a JSON object");
  std::string missing;
  const auto number = [&](const char* name) -> std::uint64_t {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number_integer() ||
        (!found->is_number_unsigned() && found->get<std::int64_t>() < 0)) {
      missing = name;
      return 0;
    }
    return found->get<std::uint64_t>();
  };
  const auto string = [&](const char* name) -> std::string {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_string()) {
      missing = name;
      return {};
    }
    return found->get<std::string>();
  };
  const std::uint64_t version = number("leat_state");
  if (missing.empty() && version > LoaderState::kVersion) {
    return not_a_state(fmt::format(
        "it is of version {}, this leat reads up to {}; use the leat "
        "that wrote it, or a newer one",
        version, LoaderState::kVersion));
  }
  std::optional<std::uint64_t> samples;
  const bool is_stream = json.value("shuffle", nlohmann::json()) == "stream";
  const auto told = json.find("samples");
  if (!is_stream || told == json.end() || !told->is_null()) {
    samples = number("samples");
  }
  LoaderState state{
      .epoch = number("epoch"),
      .position = number("position"),
      .seed = number("seed"),
      .global_batch_size = number("global_batch_size"),
      .samples = samples,
      .catalogue = string("catalogue"),
      .shuffle = Shuffle::kNone,
      .shuffle_window = static_cast<std::uint32_t>(number("shuffle_window"))};
  if (const auto behind = json.find("left_behind"); behind != json.end()) {
    state.left_behind = numbers_in(*behind);
    if (!state.left_behind) missing = "left_behind";
    state.rank = {
        .rank = static_cast<std::uint32_t>(number("rank")),
        .world_size = static_cast<std::uint32_t>(number("world_size"))};
  }
  const std::string shuffle = string("shuffle");
  if (shuffle == word_of(Shuffle::kDrawn)) {
    const std::string by = string("drawn_by");
    const auto* const maker =
        std::ranges::find(kMakers, by, &decltype(kMakers)::value_type::second);
    if (maker == kMakers.end()) {
      missing = "drawn_by";
    } else {
      state.drawn =
          DrawnState{.by = maker->first,
                     .digest = string("drawn"),
                     .samples_per_epoch = number("samples_per_epoch")};
      if (maker->first == DrawnBy::kMix) {
        std::string absent = take_mix(json, state.drawn->mix);
        if (missing.empty()) missing = std::move(absent);
      }
    }
  }
  if (!missing.empty()) {
    return not_a_state(
        fmt::format("\"{}\" is missing or of another type", missing));
  }
  if (state.global_batch_size == 0) {
    return not_a_state("its \"global_batch_size\" is 0");
  }
  for (const auto& [known, name] : kShuffles) {
    if (name == shuffle) {
      state.shuffle = known;
      LEAT_TRY_VOID(check_order(state, version));
      return state;
    }
  }
  return not_a_state(fmt::format("\"shuffle\" is \"{}\"", shuffle));
}

Result<void> check_compatible(const LoaderState& saved, const LoaderState& mine,
                              EarlierData earlier) {
  if (saved.samples && mine.samples && *saved.samples != *mine.samples) {
    return differs("a dataset of samples:", *saved.samples, *mine.samples,
                   changed(saved, earlier));
  }
  if (order_of(saved) != order_of(mine)) {
    return differs(saved.drawn || mine.drawn ? "the order" : "shuffle",
                   order_of(saved), order_of(mine),
                   "give the same shuffle= or sampler=");
  }
  if (saved.drawn) LEAT_TRY_VOID(check_drawn(*saved.drawn, *mine.drawn));
  if (saved.catalogue != mine.catalogue) {
    return differs("the catalogue", saved.catalogue, mine.catalogue,
                   changed(saved, earlier));
  }
  if (saved.seed != mine.seed) {
    return differs("seed", saved.seed, mine.seed, "give the same seed=");
  }
  const bool has_windows_of_sources =
      saved.drawn && saved.drawn->mix.shuffle == word_of(Shuffle::kBlock);
  if ((has_windows(saved.shuffle) || has_windows_of_sources) &&
      saved.shuffle_window != mine.shuffle_window) {
    return differs("shuffle_window", saved.shuffle_window, mine.shuffle_window,
                   "give the same window= of the shuffle");
  }
  if (saved.left_behind) LEAT_TRY_VOID(check_rank(saved, mine));
  std::optional<std::uint64_t> samples =
      mine.samples ? mine.samples : saved.samples;
  if (mine.drawn) samples.reset();  // Epochs have their own size.
  if (mine.drawn && mine.drawn->by == DrawnBy::kWeights) {
    samples = mine.drawn->samples_per_epoch;
  }
  if (samples && saved.position > *samples) {
    return differs("position", saved.position, *samples,
                   "it is past the end of the data");
  }
  return {};
}

}  // namespace leat
