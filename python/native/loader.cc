#include "leat/engine/loader/loader.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "functions.h"
#include "gil.h"
#include "interruptible.h"
#include "leat/base/clock.h"
#include "leat/base/units.h"
#include "leat/engine/loader/undelivered.h"
#include "leat/plan/cache_policy_kind.h"
#include "leat/runtime/log.h"
#include "leat/runtime/start_thread.h"
#include "scan_board.h"

namespace py = pybind11;

namespace leat {
namespace {

constexpr std::chrono::milliseconds kSlice(50);

/// Calls `take` until it brings something, and `wait` before it does so again.
/// That takes nothing: signals are heard after it, and a handler may raise. So
/// does delivering the log, after `place` tells what was taken.
template <class Take, class Wait>
std::optional<py::list> wait_for(const Take& take, const Wait& wait,
                                 BatchPlace& place) {
  while (true) {
    hear_signals();
    deliver_log();
    std::optional<Result<Loader::Next>> next;
    {
      const GilReleased unlocked;
      next.emplace(take());
      if (*next && (*next)->is_not_yet()) wait();
    }
    Loader::Next brought = value_or_raise(*std::move(next));
    if (brought.is_not_yet()) continue;
    place = brought.place();
    deliver_log();
    if (brought.is_end()) return std::nullopt;
    return as_python(std::move(brought.batch()));
  }
}

/// For calls that take the loader's locks. Makes them without the GIL: a thread
/// that holds one of these may need it, to let go of what a Python function
/// returned. Raises in a forked child, where nobody may be left who releases
/// them.
template <class R, class... A>
auto in_own_process(R (*call)(const Loader&, A...)) {
  return [call](const Loader& loader, A... given) -> R {
    ok_or_raise(check_process(loader));
    const GilReleased unlocked;
    return call(loader, given...);
  };
}

/// The same for a call of the loader's own.
template <class R, class... A>
auto in_own_process(R (Loader::*call)(A...) const) {
  return [call](const Loader& loader, A... given) -> R {
    ok_or_raise(check_process(loader));
    const GilReleased unlocked;
    return (loader.*call)(given...);
  };
}

std::optional<py::list> next_batch(Loader& loader, std::uint64_t iteration,
                                   BatchPlace& place) {
  return wait_for(
      [&] { return loader.next_within({iteration}, Nanoseconds(0)); },
      // An error comes with the next take.
      [&] { (void)wait_for_next(loader, {iteration}, kSlice); }, place);
}

/// The exception is raised by next() and peek(); None: one that has this text.
void put_back_batch(Loader& loader, const BatchPlace& place,
                    const std::string& why, const py::object& exception) {
  Error error(ErrorCode::kInvalidArgument, why);
  if (!exception.is_none()) {
    error = std::move(error).because_of(held(exception));
  }
  const GilReleased unlocked;
  put_back(loader, place, std::move(error));
}

/// Raises where the call would wait for the function that makes it.
void check_is_outside(const Loader& loader, const char* call) {
  if (!loader.is_in_own_function()) return;
  raise_python(Error(
      ErrorCode::kInvalidArgument,
      std::string(call) +
          " of a loader inside a function of its own ops would wait for that "
          "function forever; call it where the loader is iterated over, or "
          "raise in the function to end it"));
}

/// The next batch in its own memory, if it is there within `seconds`. None as
/// well at the end, and where next() would raise.
std::optional<py::list> look_at(Loader& loader, double seconds) {
  std::optional<Result<Loader::Next>> next;
  {
    const GilReleased unlocked;
    next.emplace(loader.peek_within(std::chrono::duration_cast<Nanoseconds>(
                                        std::chrono::duration<double>(seconds)),
                                    Loader::Memory::kOfTheBatch));
  }
  if (!*next || (*next)->is_not_yet() || (*next)->is_end()) return std::nullopt;
  return as_python(std::move((*next)->batch()));
}

ShuffleChoice shuffle_of(const std::string& name) {
  if (name == "none") return ShuffleChoice::kNone;
  if (name == "auto") return ShuffleChoice::kAuto;
  if (name == "full") return ShuffleChoice::kFull;
  if (name == "block") return ShuffleChoice::kBlock;
  if (name == "stream") return ShuffleChoice::kStream;
  raise_python(Error(ErrorCode::kInvalidArgument,
                     "shuffle=\"" + name +
                         "\"; it is True, False, \"full\", \"block\" or "
                         "\"stream\""));
}

OnError on_error_of(const std::string& name) {
  if (name == "raise") return OnError::kRaise;
  if (name == "substitute") return OnError::kSubstitute;
  raise_python(
      Error(ErrorCode::kInvalidArgument,
            "on_error=\"" + name + "\"; it is \"raise\" or \"substitute\""));
}

/// Every key is one that leat.Cache sends.
CacheOptions cache_of(const py::dict& given) {
  CacheOptions options;
  options.is_auto = py::cast<bool>(given["auto"]);
  const auto bytes = [&](const char* name) {
    return value_or_raise(parse_bytes(py::cast<std::string>(given[name])));
  };
  if (!given["ram"].is_none()) options.ram_bytes = bytes("ram");
  if (!given["disk"].is_none()) {
    options.disk = py::cast<std::string>(given["disk"]);
  }
  if (!given["disk_limit"].is_none()) {
    options.disk_limit_bytes = bytes("disk_limit");
  }
  options.policy = py::cast<std::string>(given["policy"]);
  options.window = py::cast<std::uint64_t>(given["window"]);
  options.placement = value_or_raise(
      parse_placement(py::cast<std::string>(given["placement"])));
  if (!given["form"].is_none()) {
    options.form =
        value_or_raise(cache_form_of(py::cast<std::string>(given["form"])));
  }
  options.is_shared = py::cast<bool>(given["shared"]);
  options.first_within = py::cast<std::uint64_t>(given["first_within"]);
  options.peers = py::cast<std::vector<std::string>>(given["peers"]);
  options.peer_secret = py::cast<std::string>(given["peer_secret"]);
  if (!given["peer_placement"].is_none()) {
    options.peer_placement = value_or_raise(
        peer_placement_of(py::cast<std::string>(given["peer_placement"])));
  }
  if (!given["peer_patience"].is_none()) {
    options.peer_patience = value_or_raise(
        parse_duration(py::cast<std::string>(given["peer_patience"])));
  }
  return options;
}

template <class T>
using Numbers = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <class T>
std::span<const T> span_of(const Numbers<T>& numbers) {
  return {numbers.data(), static_cast<std::size_t>(numbers.size())};
}

/// Every key and place is one that leat.mix sends.
MixOptions mix_of(const py::dict& given) {
  MixOptions mix;
  const auto stop = py::cast<std::string>(given["stop"]);
  mix.stop = stop == "first_exhausted" ? MixStop::kFirstExhausted
             : stop == "all_exhausted"
                 ? MixStop::kAllExhausted
                 : MixStop::kAllExhaustedWithoutReplacement;
  const auto composition = py::cast<std::string>(given["composition"]);
  mix.composition = composition == "random"       ? Composition::kRandom
                    : composition == "stratified" ? Composition::kStratified
                                                  : Composition::kPerSource;
  mix.samples_per_epoch = py::cast<std::uint64_t>(given["samples_per_epoch"]);
  mix.first_epoch = py::cast<std::uint64_t>(given["first_epoch"]);
  mix.is_ramp = py::cast<bool>(given["ramp"]);
  for (const py::handle one : given["schedule"]) {
    const auto [first, weights] =
        py::cast<std::pair<std::uint64_t, std::vector<double>>>(one);
    mix.schedule.push_back({.first = first, .weights = weights});
  }
  for (const py::handle one : given["sources"]) {
    const auto [name, samples, weight, wanted, begin] =
        py::cast<std::tuple<std::string, std::uint64_t, double, std::uint64_t,
                            std::uint64_t>>(one);
    mix.sources.push_back({.name = name,
                           .samples = samples,
                           .weight = weight,
                           .wanted = wanted,
                           .begin = begin});
  }
  return mix;
}

/// The samples of an epoch of a mix, by position. Each source is shuffled in
/// full, or comes as it lies.
py::array_t<std::int64_t> mixed_documents(const py::dict& mix,
                                          std::uint64_t seed, bool is_shuffled,
                                          std::uint64_t epoch) {
  MixOptions options = mix_of(mix);
  if (options.composition == Composition::kPerSource) {
    raise_python(Error(ErrorCode::kInvalidArgument,
                       "composition=\"per_source\" gives whole steps to a "
                       "source, and rows have samples of all; give "
                       "\"random\" or \"stratified\""));
  }
  const auto order = value_or_raise(MixedOrder::make(
      std::move(options),
      {.shuffle = is_shuffled ? Shuffle::kFull : Shuffle::kNone, .seed = seed},
      nullptr));
  const auto its = order->epoch(epoch);
  if (its == nullptr) {
    raise_python(Error(ErrorCode::kInvalidArgument, "a mix has no such epoch"));
  }
  py::array_t<std::int64_t> documents(static_cast<py::ssize_t>(its->size()));
  std::int64_t* const into = documents.mutable_data();
  const GilReleased unlocked;
  for (std::uint64_t p = 0; p < its->size(); ++p) {
    into[p] = static_cast<std::int64_t>(its->at(p).value);
  }
  return documents;
}

/// The digest of a mix, and the samples of each source that come before an
/// epoch.
std::pair<std::string, std::vector<std::uint64_t>> mixed_before(
    const py::dict& mix, std::uint64_t epoch) {
  const auto order = value_or_raise(
      MixedOrder::make(mix_of(mix), {.shuffle = Shuffle::kNone}, nullptr));
  if (!order->size(epoch)) {
    raise_python(Error(ErrorCode::kInvalidArgument, "a mix has no such epoch"));
  }
  return {order->digest().hex(), order->had_before(epoch, 0)};
}

/// The samples of an epoch that is drawn by weight, by position.
py::array_t<std::uint64_t> weighted_samples(const Numbers<double>& weights,
                                            std::uint64_t seed,
                                            std::uint64_t epoch,
                                            std::uint64_t size) {
  const auto order =
      value_or_raise(WeightedOrder::make(span_of(weights), seed, size));
  const auto its = order->epoch(epoch);
  py::array_t<std::uint64_t> samples(static_cast<py::ssize_t>(size));
  std::uint64_t* const into = samples.mutable_data();
  const GilReleased unlocked;
  for (std::uint64_t p = 0; p < size; ++p) into[p] = its->at(p).value;
  return samples;
}

/// The options beside `shuffle` that decide the order.
void take_order(const py::dict& given, LoaderOptions& options) {
  options.is_given = py::cast<bool>(given["sampler"]);
  if (!given["mix"].is_none()) {
    options.mix = mix_of(py::cast<py::dict>(given["mix"]));
  }
  if (given["weights"].is_none()) return;
  const auto weights = py::cast<Numbers<double>>(given["weights"]);
  options.weights = value_or_raise(
      WeightedOrder::make(span_of(weights), options.seed,
                          py::cast<std::uint64_t>(given["samples_per_epoch"])));
}

/// Every key is one that leat.Loader sends.
LoaderOptions options_of(const py::dict& given) {
  LoaderOptions options;
  const auto get = [&](const char* name, auto& into) {
    using T = std::remove_reference_t<decltype(into)>;
    into = py::cast<T>(given[name]);
  };
  get("global_batch_size", options.global_batch_size);
  get("batch_size", options.batch_size);
  options.shuffle = shuffle_of(py::cast<std::string>(given["shuffle"]));
  get("seed", options.seed);
  take_order(given, options);
  get("shuffle_window", options.shuffle_window);
  options.locality =
      value_or_raise(parse_locality(py::cast<std::string>(given["locality"])));
  get("drop_last", options.drop_last);
  get("pad", options.pad);
  get("join", options.join);
  get("epochs", options.epochs);
  options.ops = ops_with_functions(py::cast<std::string>(given["ops"]),
                                   given["functions"]);
  get("fields", options.fields);
  get("ids", options.ids);
  get("collates", options.has_collate);
  options.on_error = on_error_of(py::cast<std::string>(given["on_error"]));
  get("keeps_samples", options.keeps_samples);
  get("recorded_filters", options.recorded_filters);
  get("hashes", options.hashes);
  if (!given["memory"].is_none()) {
    options.memory_bytes =
        value_or_raise(parse_bytes(py::cast<std::string>(given["memory"])));
  }
  if (!given["cache"].is_none()) {
    options.cache = cache_of(py::cast<py::dict>(given["cache"]));
  }
  if (!given["fetch_ahead"].is_none()) {
    const auto [fetch_size, queue_threshold] =
        py::cast<std::pair<std::uint64_t, std::uint64_t>>(given["fetch_ahead"]);
    options.fetch_ahead = FetchAheadOptions{.fetch_size = fetch_size,
                                            .queue_threshold = queue_threshold};
  }
  get("threads", options.threads);
  get("trace", options.trace);
  get("order_log", options.order_log);
  get("max_in_flight", options.max_in_flight);
  get("tune", options.tune.is_on);
  get("start_threads", options.tune.start_threads);
  get("start_in_flight", options.tune.start_in_flight);
  get("tune_trace", options.tune.trace);
  if (!given["rank"].is_none()) {
    options.rank =
        Rank{.rank = py::cast<std::uint32_t>(given["rank"]),
             .world_size = py::cast<std::uint32_t>(given["world_size"])};
  }
  if (!given["process"].is_none()) {
    const auto [process, processes] =
        py::cast<std::pair<std::uint32_t, std::uint32_t>>(given["process"]);
    options.process = Rank{.rank = process, .world_size = processes};
  }
  return options;
}

/// Loaders whose close() a signal has ended, and whether they have ended since:
/// a thread that nobody waits for sees to that. The GIL guards it.
using HasEnded = std::shared_ptr<std::atomic<bool>>;
std::map<const Loader*, HasEnded>& left_to_end() {
  static auto* const loaders = new std::map<const Loader*, HasEnded>;
  return *loaders;
}

/// False: it is among those, and has yet to end.
bool may_end(const Loader* loader) {
  const auto left = left_to_end().find(loader);
  if (left == left_to_end().end()) return true;
  if (!*left->second) return false;
  left_to_end().erase(left);
  return true;
}

/// Listens for signals meanwhile. `functions` are those of the user's that its
/// threads may be in.
void wait_for_end(const std::atomic<bool>& has_ended,
                  const std::string& functions) {
  constexpr std::chrono::milliseconds kLongestSlice(5);
  constexpr std::chrono::seconds kUsual(5);
  const TimePoint begin = SteadyClock().now();
  bool has_said = functions.empty();
  for (std::chrono::microseconds slice(20);;
       slice = std::min<std::chrono::microseconds>(2 * slice, kLongestSlice)) {
    {
      const GilReleased unlocked;
      std::this_thread::sleep_for(slice);
    }
    if (has_ended) return;
    hear_signals();
    if (!has_said && SteadyClock().now() - begin > kUsual) {
      has_said = true;
      log_warning(
          std::string("close() waits for a function of yours that has not "
                      "returned: ") +
          functions + "; Ctrl-C leaves it behind, in its thread");
    }
    deliver_log();
  }
}

/// A function of the user's may never return, and the loader's threads with it:
/// a handler of a signal that raises ends the wait.
void close_loader(Loader& loader, const std::string& functions) {
  check_is_outside(loader, "close()");
  if (!may_end(&loader)) return;
  const auto has_ended = std::make_shared<std::atomic<bool>>(false);
  std::jthread closing;
  try {
    closing = start_thread([&loader, has_ended] {
      loader.close();
      *has_ended = true;
    });
  } catch (const std::system_error&) {  // There are no more threads.
    const GilReleased unlocked;
    loader.close();
    return;
  }
  try {
    wait_for_end(*has_ended, functions);
  } catch (const py::error_already_set&) {
    left_to_end()[&loader] = has_ended;
    closing.detach();
    throw;
  }
}

/// Python's loader. It dies with the GIL held, which the threads that its end
/// waits for may need.
struct EndWithoutGil {
  void operator()(Loader* loader) const {
    if (!may_end(loader)) return;  // It lives as long as the process.
    const GilReleased unlocked;
    delete loader;
  }
};
using HeldLoader = std::unique_ptr<Loader, EndWithoutGil>;

/// Messages of opening are delivered before the loader is there.
HeldLoader opened(Result<std::unique_ptr<Loader>> loader) {
  HeldLoader its(loader ? loader->release() : nullptr);  // If that throws.
  deliver_log();
  ok_or_raise(loader ? Result<void>() : Result<void>(loader.error()));
  return its;
}

/// Shards that nobody has indexed may be left to the first epoch.
HeldLoader open_url(const std::string& url, const StoreOptions& store,
                    const std::string& refresh, const py::dict& given) {
  const LoaderOptions options = options_of(given);
  CatalogueOptions catalogue;
  catalogue.refresh = value_or_raise(Refresh::parse(refresh));
  catalogue.scans = scan_board();
  LoaderSource source = run_interruptibly([&](const std::stop_token& stop) {
    return open_for_loader(url, store, catalogue, options, process_env(), stop);
  });
  // Its threads may need the GIL before an error ends them.
  std::optional<Result<std::unique_ptr<Loader>>> loader;
  {
    const GilReleased unlocked;
    loader.emplace(Loader::open(std::move(source), options, process_env()));
  }
  return opened(*std::move(loader));
}

/// The fields of DealtSteps, in their order.
using DealtInPython =
    std::tuple<std::uint32_t, std::uint64_t, Numbers<std::uint64_t>,
               Numbers<std::uint64_t>>;

void give_order(Loader& loader, std::uint64_t epoch, std::uint64_t first,
                const Numbers<std::uint64_t>& samples,
                const Numbers<std::uint64_t>& ends, bool starts,
                std::uint64_t rows_of_a_step,
                const std::optional<DealtInPython>& dealt) {
  const auto copy = [](const Numbers<std::uint64_t>& numbers) {
    const std::span<const std::uint64_t> span = span_of(numbers);
    return std::vector<std::uint64_t>(span.begin(), span.end());
  };
  GivenEpoch order{.first = first,
                   .samples = copy(samples),
                   .ends = copy(ends),
                   .rows_of_a_step = rows_of_a_step};
  if (dealt) {
    const auto& [ranks, begin, positions, dealt_ends] = *dealt;
    order.dealt = DealtSteps{.ranks = ranks,
                             .first = begin,
                             .positions = copy(positions),
                             .ends = copy(dealt_ends)};
  }
  check_is_outside(loader, "iter()");
  // Ends a run, whose Python functions need the GIL.
  ok_or_raise([&] {
    const GilReleased unlocked;
    return loader.give_order(epoch, std::move(order), starts);
  }());
}

std::optional<Dataset> dataset_of(const Loader& loader) {
  Dataset dataset = loader.dataset();
  if (dataset.catalogue == nullptr) return std::nullopt;
  return dataset;
}

bool is_current(const Loader& loader, std::uint64_t iteration) {
  return loader.is_current({iteration});
}

/// The waits of Loader::take_waits() in seconds, with their causes.
std::vector<std::pair<double, std::string>> take_waits(Loader& loader) {
  ok_or_raise(check_process(loader));
  const GilReleased unlocked;
  std::vector<std::pair<double, std::string>> waits;
  for (const StepWait& step : loader.take_waits()) {
    waits.emplace_back(std::chrono::duration<double>(step.wait).count(),
                       to_string(step.cause));
  }
  return waits;
}

std::optional<std::tuple<double, double, double>> pace_of(
    const Loader& loader) {
  const auto pace = loader.pace();
  if (!pace) return std::nullopt;
  return std::tuple(pace->offered, pace->reached, pace->ceiling);
}

std::vector<std::string> stats_of(const Loader& loader) {
  std::vector<std::string> epochs;
  for (const EpochStats& epoch : loader.stats()) {
    epochs.push_back(to_json(epoch, loader.options().hashes));
  }
  return epochs;
}

py::dict recent_of(const Loader& loader) {
  const RecentStalls recent = in_own_process(&Loader::recent)(loader);
  const auto seconds = [](Nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  };
  py::dict stalls;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Stall::kCount); ++i) {
    const auto stall = static_cast<Stall>(i);
    stalls[py::str(std::string(to_string(stall)))] =
        seconds(recent.stalls[stall]);
  }
  py::dict told;
  told["seconds"] = seconds(recent.elapsed);
  told["samples"] = recent.samples;
  told["wait_seconds"] = seconds(recent.stalls.total());
  told["stalls"] = stalls;
  return told;
}

std::vector<std::string> decisions_of(const Loader& loader) {
  std::vector<std::string> lines;
  for (const Decision& decision : loader.decisions()) {
    lines.push_back(to_json(decision));
  }
  return lines;
}

std::optional<std::string> explanation_of(const Loader& loader) {
  const std::optional<Explanation> found = loader.explanation();
  return found ? std::optional(to_json(*found)) : std::nullopt;
}

py::dict gauges_of(const Loader& loader) {
  py::dict values;
  const std::shared_ptr<const Metrics> metrics =
      in_own_process(&Loader::metrics)(loader);
  for (std::size_t i = 0; i < kCatalog.size(); ++i) {
    const std::int64_t value = metrics->value(static_cast<Metric>(i));
    if (value == Metrics::kUnknown) continue;
    values[py::str(std::string(kCatalog[i].name))] = value;
  }
  return values;
}

/// The name of each policy of caches, and whether leat.research.Cache alone
/// takes it.
std::vector<std::pair<std::string, bool>> cache_policies() {
  std::vector<std::pair<std::string, bool>> policies;
  for (const CachePolicyKind* kind : cache_policy_kinds()) {
    policies.emplace_back(kind->name, kind->is_for_research);
  }
  return policies;
}

}  // namespace

void bind_loader(py::module_& module) {
  py::class_<BatchPlace>(module, "BatchPlace")
      .def(py::init<>())
      .def_readonly("epoch", &BatchPlace::epoch)
      .def_readonly("at", &BatchPlace::at)
      .def_property_readonly("is_taken", [](const BatchPlace& place) {
        return place.iteration != 0;
      });
  py::class_<Loader, HeldLoader>(module, "Loader")
      .def(py::init([](const Dataset& dataset, const py::dict& options) {
             return opened(
                 Loader::open(dataset, options_of(options), process_env()));
           }),
           py::arg("dataset"), py::arg("options"))
      .def_static("of_url", &open_url, py::arg("url"), py::arg("store"),
                  py::arg("refresh"), py::arg("options"))
      .def("dataset", in_own_process(&dataset_of))
      .def("begin",
           [](Loader& loader) {
             check_is_outside(loader, "iter()");
             std::optional<Result<Loader::Iteration>> begun;
             {
               const GilReleased unlocked;
               begun.emplace(loader.begin());
             }
             return value_or_raise(*std::move(begun)).number;
           })
      .def("next",
           [](Loader& loader, std::uint64_t iteration, BatchPlace& place) {
             check_is_outside(loader, "next()");
             return next_batch(loader, iteration, place);
           })
      .def("put_back", &put_back_batch)
      .def("next_place",
           [](const Loader& loader, BatchPlace& place) {
             ok_or_raise(check_process(loader));
             place = value_or_raise([&] {
               const GilReleased unlocked;
               return next_place(loader);
             }());
           })
      .def("begin_skipping",
           [](Loader& loader) {
             check_is_outside(loader, "iter()");
             std::optional<Result<Loader::Iteration>> begun;
             {
               const GilReleased unlocked;
               begun.emplace(loader.begin_skipping());
             }
             return value_or_raise(*std::move(begun)).number;
           })
      .def("skip",
           [](Loader& loader, std::uint64_t iteration, BatchPlace& place) {
             check_is_outside(loader, "next()");
             std::optional<Result<std::optional<BatchPlace>>> skipped;
             {
               const GilReleased unlocked;
               skipped.emplace(loader.skip({iteration}));
             }
             auto its = value_or_raise(*std::move(skipped));
             if (its) place = *std::move(its);
             return its.has_value();
           })
      .def("is_current", in_own_process(&is_current))
      .def("peek",
           [](Loader& loader, BatchPlace& place) {
             check_is_outside(loader, "peek()");
             return wait_for([&] { return loader.peek_within(kSlice); }, [] {},
                             place);
           })
      .def("look", &look_at, py::arg("seconds"))
      .def("set_epoch",
           [](Loader& loader, std::uint64_t epoch) {
             check_is_outside(loader, "set_epoch()");
             // Ends a run, whose Python functions need the GIL.
             ok_or_raise([&] {
               const GilReleased unlocked;
               return loader.set_epoch(epoch);
             }());
           })
      .def("give_order", &give_order, py::arg("epoch"), py::arg("first"),
           py::arg("samples"), py::arg("ends"), py::arg("starts"),
           py::arg("rows_of_a_step") = 1, py::arg("dealt") = py::none())
      .def("expect_order_of",
           [](Loader& loader, std::uint64_t samples) {
             ok_or_raise(check_process(loader));
             const GilReleased unlocked;
             loader.expect_order_of(samples);
           })
      .def("next_epoch", in_own_process(&Loader::next_epoch))
      .def("state", in_own_process(&Loader::state))
      .def("load_state",
           [](Loader& loader, const std::string& state) {
             check_is_outside(loader, "load_state_dict()");
             std::optional<Result<void>> loaded;
             {
               const GilReleased unlocked;
               loaded.emplace(loader.load_state(state));
             }
             ok_or_raise(*loaded);
           })
      .def("length", in_own_process(&Loader::length))
      .def("remaining", in_own_process(&Loader::remaining))
      .def_property_readonly(
          "rank", [](const Loader& loader) { return loader.rank().rank; })
      .def_property_readonly(
          "world_size",
          [](const Loader& loader) { return loader.rank().world_size; })
      .def_property_readonly("field_names",
                             in_own_process(&Loader::field_names))
      .def_property_readonly("dealing", in_own_process(&Loader::dealing))
      .def("stats", in_own_process(&stats_of))
      .def("recent", &recent_of)
      .def("decisions", in_own_process(&decisions_of))
      .def("explain", in_own_process(&explanation_of))
      .def("metrics", &gauges_of)
      .def("ledger", in_own_process(&Loader::ledger))
      .def("take_waits", &take_waits)
      .def("pace", in_own_process(&pace_of))
      .def("set_pace_elsewhere",
           [](Loader& loader, double offered, double reached, double ceiling) {
             ok_or_raise(check_process(loader));
             const GilReleased unlocked;
             loader.set_pace_elsewhere({offered, reached, ceiling});
           })
      .def("is_in_own_function", &Loader::is_in_own_function)
      .def("close", &close_loader, py::arg("functions") = "");
  module.def("cache_policies", &cache_policies);
  module.def("weighted_samples", &weighted_samples, py::arg("weights"),
             py::arg("seed"), py::arg("epoch"), py::arg("size"));
  module.def("mixed_documents", &mixed_documents, py::arg("mix"),
             py::arg("seed"), py::arg("is_shuffled"), py::arg("epoch"));
  module.def("mixed_before", &mixed_before, py::arg("mix"), py::arg("epoch"));
}

}  // namespace leat
