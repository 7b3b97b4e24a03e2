#include "leat/cli/simulation_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/engine/prices.h"
#include "leat/engine/toml_reader.h"

namespace leat {
namespace {

// A larger number is taken for a typing error.
constexpr std::uint64_t kMostSamples = CachePolicySpec::kMaxSamples;
constexpr std::uint64_t kMostRanks = 1 << 20;
constexpr std::uint64_t kMostEpochs = 1000000;
constexpr std::uint64_t kMostSolarEpochs = 4096;
constexpr std::uint64_t kMostInFlight = 1 << 20;
constexpr std::uint64_t kMostDeliSamples = 1 << 27;
constexpr std::uint64_t kMostBlockSamples = 1 << 24;
constexpr std::size_t kMostRuns = 10000;

std::uint32_t narrow(std::uint64_t checked) {
  return static_cast<std::uint32_t>(checked);
}

/// Bytes in `capacity` or samples in `items`: one of them.
Result<TierSpec> read_tier(const toml::table& table, const std::string& where) {
  TomlReader reader(table, where);
  TierSpec tier;
  tier.policy =
      cache_policy_names()[reader.choice("policy", cache_policy_names())];
  if (reader.has("items") == reader.has("capacity")) {
    reader.refuse("capacity",
                  "or items says how large a tier is: give one of them");
  }
  if (reader.has("items")) {
    tier.unit = CapacityUnit::kItems;
    tier.capacity = reader.number("items", 0, kMostSamples);
  } else {
    tier.capacity = reader.bytes("capacity", 0);
  }
  tier.window = reader.number("window", 1, std::uint64_t{1} << 62, 0);
  LEAT_TRY_VOID(reader.done());
  return tier;
}

Result<TimeOptions> read_times(const toml::table& table,
                               const std::string& where) {
  TomlReader reader(table, where);
  TimeOptions times;
  times.compute_seconds = reader.seconds("compute");
  times.get_seconds = reader.seconds("get");
  times.peer_seconds = reader.seconds("peer", 0);
  times.hit_seconds = reader.seconds("hit", 0);
  times.bytes_per_second =
      static_cast<double>(reader.bytes("bytes_per_second", 0));
  times.store_bytes_per_second =
      static_cast<double>(reader.bytes("store_bytes_per_second", 0));
  times.peer_bytes_per_second =
      static_cast<double>(reader.bytes("peer_bytes_per_second", 0));
  times.max_in_flight = narrow(
      reader.number("max_in_flight", 1, kMostInFlight, kDefaultInFlight));
  times.prefetch_steps =
      narrow(reader.number("prefetch_steps", 0, kMostInFlight, 2));
  LEAT_TRY_VOID(reader.done());
  return times;
}

Result<PeerMemory> read_peers(const toml::table& table,
                              const std::string& where) {
  TomlReader reader(table, where);
  PeerMemory peers;
  peers.bytes = reader.bytes("memory");
  peers.servers = narrow(reader.number("servers", 1, kMostRanks));
  LEAT_TRY_VOID(reader.done());
  return peers;
}

/// One size for all samples alike, or one a sample: those of the file, which
/// begin anew at their end.
void read_sizes(TomlReader& reader, SimulationOptions& options) {
  options.sizes = reader.sizes("sample_bytes", 1);
  const std::size_t given = options.sizes.size();
  if (given <= 1) return;
  if (given > options.samples ||
      options.samples > kMaxTableBytes / sizeof(std::uint64_t)) {
    return reader.refuse(
        "sample_bytes",
        fmt::format("lists {} sizes for {} samples: give at most one a sample, "
                    "and one size alone for more than {} samples",
                    given, options.samples,
                    kMaxTableBytes / sizeof(std::uint64_t)));
  }
  options.sizes.resize(options.samples);
  for (std::size_t i = given; i < options.sizes.size(); ++i) {
    options.sizes[i] = options.sizes[i - given];
  }
}

/// Reads the keys of a block shuffle, and cuts the samples into blocks of
/// `block_samples`. Refuses these keys with any other shuffle.
void read_blocks(TomlReader& reader, SimulationOptions& options) {
  if (options.order.shuffle != Shuffle::kBlock) {
    for (const char* key : {"block_samples", "shuffle_window"}) {
      if (reader.has(key)) {
        reader.refuse(key,
                      "is for shuffle = \"block\": set that, or leave it "
                      "out");
      }
    }
    return;
  }
  const std::uint64_t each = reader.number("block_samples", 1, kMostSamples);
  options.order.window_blocks =
      narrow(reader.number("shuffle_window", 1, 1 << 20, 16));
  if (options.samples > kMostBlockSamples) {
    return reader.refuse("shuffle", fmt::format("is of blocks, of more than {} "
                                                "samples: take fewer",
                                                kMostBlockSamples));
  }
  // Each block an object of its own, so that none is cut further.
  std::vector<SampleSpan> spans(options.samples);
  for (std::uint64_t i = 0; i < spans.size(); ++i) {
    spans[i] = {.object = ObjectIndex{narrow(i / each)},
                .begin = i % each,
                .end = i % each + 1};
  }
  options.blocks = std::make_shared<BlockMap>(BlockMap::cut(spans, each));
}

/// The job itself, without its tables.
void read_job(TomlReader& reader, SimulationOptions& options) {
  static constexpr std::array<std::string_view, 3> kShuffles = {"full", "none",
                                                                "block"};
  static constexpr std::array<std::string_view, 3> kTails = {"keep", "drop",
                                                             "pad"};
  static constexpr std::array<std::string_view, 3> kScopes = {"node", "rank",
                                                              "peers"};
  options.samples = reader.number("samples", 1, kMostSamples);
  read_sizes(reader, options);
  options.order.shuffle =
      std::array{Shuffle::kFull, Shuffle::kNone,
                 Shuffle::kBlock}[reader.choice("shuffle", kShuffles)];
  read_blocks(reader, options);
  options.order.seed = reader.number("seed", 0, std::uint64_t{1} << 62, 0);
  options.global_batch = reader.number("global_batch_size", 1, Steps::kMax);
  options.tail = std::array{Tail::kKeep, Tail::kDrop,
                            Tail::kPad}[reader.choice("tail", kTails)];
  options.locality =
      static_cast<Locality>(reader.choice("locality", locality_names()));
  options.ranks = narrow(reader.number("world_size", 1, kMostRanks, 1));
  options.nodes = narrow(reader.number("nodes", 1, kMostRanks, 1));
  options.epochs = reader.number("epochs", 1, kMostEpochs);
  options.scope =
      std::array{CacheScope::kNode, CacheScope::kRank,
                 CacheScope::kPeers}[reader.choice("scope", kScopes)];
  options.placement =
      static_cast<Placement>(reader.choice("placement", placement_names()));
  options.only_ranks = narrow(reader.number("only_ranks", 0, kMostRanks, 0));
}

Result<NamedSimulation> read_simulation(const toml::table& table,
                                        const std::string& where) {
  TomlReader reader(table, where);
  NamedSimulation simulation;
  simulation.name = reader.text("name", where);
  read_job(reader, simulation.options);
  const toml::array* tiers = reader.tables("tiers");
  const toml::table* peers = reader.table("peers");
  const toml::table* times = reader.table("times");
  const toml::table* billing = reader.table("billing");
  LEAT_TRY_VOID(reader.done());
  const std::size_t count = tiers == nullptr ? 0 : tiers->size();
  simulation.options.tiers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    LEAT_TRY(auto tier, read_tier(*tiers->get(i)->as_table(),
                                  fmt::format("{}, tier {}", where, i + 1)));
    simulation.options.tiers.push_back(std::move(tier));
  }
  if (peers != nullptr) {
    LEAT_TRY(simulation.options.peer_memory,
             read_peers(*peers, where + ", peers"));
  }
  if (times != nullptr) {
    LEAT_TRY(simulation.options.times, read_times(*times, where + ", times"));
  }
  if (billing != nullptr) {
    LEAT_TRY(const PricesAndBilling read,
             read_billing(*billing, where + ", billing"));
    simulation.prices = read.prices;
    simulation.billing = read.billing;
  }
  return simulation;
}

Result<NamedDeli> read_deli(const toml::table& table,
                            const std::string& where) {
  TomlReader reader(table, where);
  NamedDeli deli;
  deli.name = reader.text("name", where);
  deli.samples = reader.number("samples", 1, kMostDeliSamples);
  deli.nodes = narrow(reader.number("nodes", 1, kMostRanks, 1));
  deli.epochs = reader.number("epochs", 1, kMostEpochs);
  deli.seed = reader.number("seed", 0, std::uint64_t{1} << 62, 0);
  deli.options.fetch_size = reader.number("fetch_size", 1, kMostSamples);
  deli.options.queue_threshold =
      reader.number("queue_threshold", 0, kMostSamples, 0);
  deli.options.capacity_items = reader.number("items", 1, kMostSamples);
  deli.options.batch = reader.number("batch_size", 1, kMostSamples);
  deli.options.compute_seconds = reader.seconds("compute");
  deli.options.get_seconds = reader.seconds("get");
  deli.options.hit_seconds = reader.seconds("hit");
  deli.options.fetch_seconds = reader.seconds("fetch");
  deli.options.fetch_sample_seconds = reader.seconds("fetch_sample");
  // Its orders are written out: 8 bytes a read, for one node.
  if (deli.samples / deli.nodes > (std::uint64_t{1} << 27) / deli.epochs) {
    reader.refuse("epochs", "times samples of a node are more than 134217728");
  }
  LEAT_TRY_VOID(reader.done());
  return deli;
}

Result<NamedSolar> read_solar(const toml::table& table,
                              const std::string& where) {
  static constexpr std::array<std::string_view, 3> kDealings = {
      "runs", "holders", "unequal"};
  static constexpr std::array<std::string_view, 2> kOrders = {"as_numbered",
                                                              "fewest_loads"};
  using Choice = SolarOptions::EpochOrderChoice;
  TomlReader reader(table, where);
  NamedSolar solar;
  solar.name = reader.text("name", where);
  solar.options.samples = reader.number("samples", 1, kMostSamples);
  solar.options.seed = reader.number("seed", 0, std::uint64_t{1} << 62, 0);
  solar.options.global_batch =
      reader.number("global_batch_size", 1, Steps::kMax);
  solar.options.nodes = narrow(reader.number("nodes", 1, kMostRanks, 1));
  solar.options.epochs = reader.number("epochs", 1, kMostSolarEpochs);
  solar.options.capacity_items = reader.number("items", 0, kMostSamples);
  solar.options.dealing =
      std::array{Dealing::kRuns, Dealing::kHolders,
                 Dealing::kBalanced}[reader.choice("dealing", kDealings)];
  solar.options.epoch_order =
      std::array{Choice::kAsNumbered,
                 Choice::kFewestLoads}[reader.choice("epoch_order", kOrders)];
  // Each cache has a table of 4 bytes a sample.
  if (solar.options.samples > kMaxTableBytes / 4 / solar.options.nodes) {
    reader.refuse("samples", fmt::format("times nodes are more than {}",
                                         kMaxTableBytes / 4));
  }
  LEAT_TRY_VOID(reader.done());
  return solar;
}

/// A way that names a simulation needs one that the file has, with times and
/// with as many nodes.
Result<void> check_simulations_of(
    const NamedBreakEven& run,
    const std::vector<NamedSimulation>& simulations) {
  for (const NamedWay& way : run.ways) {
    if (way.simulation.empty()) continue;
    const auto found =
        std::ranges::find(simulations, way.simulation, &NamedSimulation::name);
    const auto refuse = [&](std::string_view why) {
      return invalid("{}, way {}: simulation = \"{}\" {}", run.name,
                     way.way.name, way.simulation, why);
    };
    if (found == simulations.end()) {
      return refuse("is no [[simulation]] of the file: name one by its name");
    }
    if (!found->options.times) {
      return refuse("has no times, and time is money here: give it times");
    }
    if (found->options.nodes != run.nodes) {
      return refuse("is of another number of nodes: give both the same");
    }
  }
  return {};
}

template <class Item, class Read>
Result<std::vector<Item>> read_all(const toml::array* tables,
                                   std::string_view kind, const Read& read) {
  std::vector<Item> items;
  if (tables == nullptr) return items;
  if (tables->size() > kMostRuns) {
    return invalid("{} of [[{}]] are more than {}", tables->size(), kind,
                   kMostRuns);
  }
  items.reserve(tables->size());
  for (std::size_t i = 0; i < tables->size(); ++i) {
    LEAT_TRY(auto item, read(*tables->get(i)->as_table(),
                             fmt::format("{} {}", kind, i + 1)));
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace

Result<SimulationFile> parse_simulation_file(std::string_view text,
                                             const std::string& name) {
  LEAT_TRY(const toml::table root, parse_toml(text, name));
  TomlReader reader(root, name);
  const toml::array* simulations = reader.tables("simulation");
  const toml::array* deli = reader.tables("deli");
  const toml::array* solar = reader.tables("solar");
  const toml::array* break_even = reader.tables("break_even");
  LEAT_TRY_VOID(reader.done());
  SimulationFile file;
  LEAT_TRY(file.simulations, read_all<NamedSimulation>(
                                 simulations, "simulation", read_simulation));
  LEAT_TRY(file.deli, read_all<NamedDeli>(deli, "deli", read_deli));
  LEAT_TRY(file.solar, read_all<NamedSolar>(solar, "solar", read_solar));
  LEAT_TRY(file.break_even,
           read_all<NamedBreakEven>(break_even, "break_even", read_break_even));
  for (const NamedBreakEven& run : file.break_even) {
    LEAT_TRY_VOID(check_simulations_of(run, file.simulations));
  }
  if (file.simulations.empty() && file.deli.empty() && file.solar.empty() &&
      file.break_even.empty()) {
    return invalid(
        "{} has no [[simulation]], [[break_even]], [[deli]] or [[solar]]: see "
        "docs/reference/plan.md for what to write",
        name);
  }
  return file;
}

}  // namespace leat
