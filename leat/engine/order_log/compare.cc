#include "leat/engine/order_log/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

/// Steps of unequal size are held until they end at one position, but no more
/// samples than this.
constexpr std::size_t kMostHeld = std::size_t{1} << 25;
/// A difference names at most this many samples of each run.
constexpr std::size_t kMostNamed = 5;

/// One of the two runs that are compared, read step by step. Checks that the
/// run delivers each sample once.
class Side {
 public:
  static Result<Side> open(const OrderRunFiles& files,
                           const HearOrderBytes& progress) {
    LEAT_TRY(std::unique_ptr<OrderRun> run,
             OrderRun::open(files.files, progress));
    return Side(files.name, std::move(run));
  }

  /// The next step; nullopt at the end, or after a fault.
  Result<std::optional<OrderStep>> next(const std::stop_token& stop) {
    while (!fault_) {
      if (stop.stop_requested()) {
        return Error(ErrorCode::kCancelled, "verify was stopped");
      }
      LEAT_TRY(std::optional<OrderEvent> event, run_->next());
      if (!event) return std::nullopt;
      if (auto* step = std::get_if<OrderStep>(&*event)) {
        fault_ = check_.take(*step);
        if (fault_) break;
        if (data_.empty()) data_ = step->head->data;
        return std::optional(std::move(*step));
      }
      if (const auto* end = std::get_if<OrderEpochEnd>(&*event)) {
        fault_ = check_.take(*end);
      } else {
        fault_ = std::get<OrderFault>(*event).what;
      }
    }
    return std::nullopt;
  }

  const std::string& name() const { return name_; }
  /// Names the run.
  std::optional<std::string> fault() const {
    if (!fault_) return std::nullopt;
    return name_ + ": " + *fault_;
  }
  const OnceCheck& check() const { return check_; }
  const std::string& data() const { return data_; }
  OrderVerdict::Run told() const {
    return {.name = name_,
            .logs = run_->logs(),
            .world_sizes = run_->world_sizes(),
            .notes = run_->notes()};
  }

 private:
  Side(std::string name, std::unique_ptr<OrderRun> run)
      : name_(std::move(name)), run_(std::move(run)) {}

  std::string name_;
  std::unique_ptr<OrderRun> run_;
  OnceCheck check_;
  std::string data_;
  std::optional<std::string> fault_;
};

/// A row, so that padding is not mistaken for a sample.
struct Row {
  std::uint64_t sample = 0;
  bool pads = false;
  friend auto operator<=>(Row, Row) = default;
};

void add_rows(const OrderStep& step, std::vector<Row>& rows) {
  for (const OrderLogBatch& rank : step.ranks) {
    auto padding = rank.padding.begin();
    for (std::uint64_t row = 0; row < rank.ids.size(); ++row) {
      const bool pads = padding != rank.padding.end() && *padding == row;
      if (pads) ++padding;
      rows.push_back({rank.ids[row].value, pads});
    }
  }
}

/// "3, 17 and 12 more"; empty: none.
std::string names_of(const std::vector<Row>& rows) {
  std::string names;
  for (std::size_t i = 0; i < std::min(rows.size(), kMostNamed); ++i) {
    names += fmt::format("{}{}{}", i == 0 ? "" : ", ", rows[i].sample,
                         rows[i].pads ? " (padding)" : "");
  }
  if (rows.size() > kMostNamed) {
    names += fmt::format(" and {} more", rows.size() - kMostNamed);
  }
  return names;
}

/// Steps of each run that end at one position. REQUIRES: neither is empty.
struct Chunk {
  std::vector<OrderStep> a;
  std::vector<OrderStep> b;
};

OrderPlace end_of(const std::vector<OrderStep>& steps) {
  return {steps.back().epoch, steps.back().to};
}

/// "step 5 of epoch 0 (positions 40 to 48)", or a run of steps.
std::string place_of(const std::vector<OrderStep>& steps) {
  if (steps.size() == 1) return to_string(steps[0]);
  return fmt::format("steps {} to {} of epoch {} (positions {} to {})",
                     steps.front().number, steps.back().number,
                     steps.front().epoch, steps.front().from, steps.back().to);
}

std::optional<std::string> difference_of_sets(const Chunk& chunk, const Side& a,
                                              const Side& b) {
  std::vector<Row> in_a;
  std::vector<Row> in_b;
  for (const OrderStep& step : chunk.a) add_rows(step, in_a);
  for (const OrderStep& step : chunk.b) add_rows(step, in_b);
  if (in_a == in_b) return std::nullopt;
  std::ranges::sort(in_a);
  std::ranges::sort(in_b);
  std::vector<Row> only_a;
  std::vector<Row> only_b;
  std::ranges::set_difference(in_a, in_b, std::back_inserter(only_a));
  std::ranges::set_difference(in_b, in_a, std::back_inserter(only_b));
  if (only_a.empty() && only_b.empty()) return std::nullopt;
  std::string text = "the first difference is in " + place_of(chunk.a);
  if (!only_a.empty()) {
    text += fmt::format("; only {} has samples {}", a.name(), names_of(only_a));
  }
  if (!only_b.empty()) {
    text += fmt::format("; only {} has samples {}", b.name(), names_of(only_b));
  }
  return text;
}

/// Takes equal steps of both runs. Describes the first row in which a rank has
/// another sample in `b` than in `a`; nullopt if there is none.
std::optional<std::string> difference_of_rows(const OrderStep& in_a,
                                              const OrderStep& in_b,
                                              const Side& a, const Side& b) {
  for (std::size_t rank = 0; rank < in_a.ranks.size(); ++rank) {
    const std::vector<SampleId>& ids_a = in_a.ranks[rank].ids;
    const std::vector<SampleId>& ids_b = in_b.ranks[rank].ids;
    if (ids_a == ids_b) continue;
    const auto [at_a, at_b] = std::ranges::mismatch(ids_a, ids_b);
    const std::string where =
        fmt::format("rank {}, row {}", rank, at_a - ids_a.begin());
    const auto name = [](auto at, auto end) {
      return at == end ? std::string("nothing")
                       : fmt::format("sample {}", at->value);
    };
    return fmt::format(
        "the first difference is in {}, which has the same samples in another "
        "order: {} has {} in {} and {} has {} in {}",
        to_string(in_a), where, name(at_a, ids_a.end()), a.name(), where,
        name(at_b, ids_b.end()), b.name());
  }
  return std::nullopt;
}

/// Reads on until both runs have steps that end at one position. Nullopt:
/// `finding` tells why there are none, or both runs are at their end.
class ChunkReader {
 public:
  ChunkReader(Side& a, Side& b, const std::stop_token& stop)
      : a_(a), b_(b), stop_(stop) {}

  Result<std::optional<Chunk>> next() {
    Chunk chunk;
    held_ = 0;
    LEAT_TRY(const bool has_a, extend(a_, chunk.a));
    LEAT_TRY(const bool has_b, extend(b_, chunk.b));
    if (finding_) return std::nullopt;
    if (!has_a && !has_b) return std::nullopt;
    if (!has_a || !has_b) {
      finding_ = fmt::format("{} ends where {} goes on: with {}",
                             (has_a ? b_ : a_).name(), (has_a ? a_ : b_).name(),
                             to_string((has_a ? chunk.a : chunk.b)[0]));
      return std::nullopt;
    }
    LEAT_TRY_VOID(meet(chunk));
    if (finding_) return std::nullopt;
    return std::optional(std::move(chunk));
  }

  const std::optional<std::string>& finding() const { return finding_; }

 private:
  /// Adds the next step of `side`; false if it has none.
  Result<bool> extend(Side& side, std::vector<OrderStep>& steps) {
    LEAT_TRY(std::optional<OrderStep> step, side.next(stop_));
    if (side.fault() && !finding_) finding_ = side.fault();
    if (!step) return false;
    for (const OrderLogBatch& rank : step->ranks) held_ += rank.ids.size();
    if (held_ > kMostHeld) {
      return exhausted(
          "the steps of {} and {} differ in size and end at one position too "
          "rarely to be compared; compare runs whose global batches divide "
          "each other",
          a_.name(), b_.name());
    }
    steps.push_back(*std::move(step));
    return true;
  }

  Result<void> meet(Chunk& chunk) {
    const OrderStep& in_a = chunk.a[0];
    const OrderStep& in_b = chunk.b[0];
    if (std::pair(in_a.epoch, in_a.from) != std::pair(in_b.epoch, in_b.from)) {
      finding_ = fmt::format("{} goes on with {}, and {} with {}", a_.name(),
                             to_string(in_a), b_.name(), to_string(in_b));
      return {};
    }
    const std::uint64_t epoch = in_a.epoch;
    while (end_of(chunk.a) != end_of(chunk.b)) {
      const bool is_a_behind = end_of(chunk.a) < end_of(chunk.b);
      Side& behind = is_a_behind ? a_ : b_;
      std::vector<OrderStep>& steps = is_a_behind ? chunk.a : chunk.b;
      const std::uint64_t to = steps.back().to;
      LEAT_TRY(const bool has_step, extend(behind, steps));
      if (finding_) return {};
      if (has_step && steps.back().epoch == epoch) continue;
      finding_ =
          fmt::format("{} ends epoch {} at position {}, and {} goes on",
                      behind.name(), epoch, to, (is_a_behind ? b_ : a_).name());
      return {};
    }
    return {};
  }

  Side& a_;
  Side& b_;
  const std::stop_token stop_;
  std::size_t held_ = 0;
  std::optional<std::string> finding_;
};

/// Nullopt: the steps are alike. Clears `is_order` where they are not split
/// alike among ranks.
std::optional<std::string> difference(const Chunk& chunk, const Side& a,
                                      const Side& b, bool is_strict,
                                      bool& is_order) {
  const OrderStep& in_a = chunk.a[0];
  const OrderStep& in_b = chunk.b[0];
  if (in_a.head->data != in_b.head->data) {
    return fmt::format(
        "the first difference is in {}: its data has the digest {} in {} and "
        "{} in {}, so the numbers name other samples",
        place_of(chunk.a), in_a.head->data, a.name(), in_b.head->data,
        b.name());
  }
  if (auto found = difference_of_sets(chunk, a, b)) return found;
  const bool are_alike = chunk.a.size() == 1 && chunk.b.size() == 1 &&
                         in_a.ranks.size() == in_b.ranks.size();
  if (!are_alike) {
    is_order = false;
    return std::nullopt;
  }
  auto rows = difference_of_rows(in_a, in_b, a, b);
  if (!rows) return std::nullopt;
  is_order = false;
  return is_strict ? rows : std::nullopt;
}

OrderVerdict verdict_of(const Side& side) {
  OrderVerdict verdict{.finding = side.fault(),
                       .epochs = side.check().epochs(),
                       .data = side.data(),
                       .digest = side.check().digest()};
  verdict.runs.push_back(side.told());
  return verdict;
}

}  // namespace

Result<OrderVerdict> verify_run(const OrderRunFiles& run,
                                const std::stop_token& stop,
                                const HearOrderBytes& progress) {
  LEAT_TRY(Side side, Side::open(run, progress));
  while (true) {
    LEAT_TRY(const std::optional<OrderStep> step, side.next(stop));
    if (!step) return verdict_of(side);
  }
}

Result<OrderVerdict> compare_runs(const OrderRunFiles& a,
                                  const OrderRunFiles& b, bool is_strict,
                                  const std::stop_token& stop,
                                  const HearOrderBytes& progress) {
  LEAT_TRY(Side side_a, Side::open(a, progress));
  LEAT_TRY(Side side_b, Side::open(b, progress));
  ChunkReader reader(side_a, side_b, stop);
  bool is_order = true;
  std::optional<std::string> finding;
  while (!finding) {
    LEAT_TRY(const std::optional<Chunk> chunk, reader.next());
    if (!chunk) break;
    finding = difference(*chunk, side_a, side_b, is_strict, is_order);
  }
  if (!finding) finding = reader.finding();
  OrderVerdict verdict = verdict_of(side_a);
  verdict.finding = std::move(finding);
  verdict.is_order_of_ranks = is_order && !verdict.finding;
  verdict.runs.push_back(side_b.told());
  return verdict;
}

}  // namespace leat
