// The form in which a loader's cache keeps samples: by its option, or by the
// cost of the first samples in both.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/base/check.h"
#include "leat/cache/segment_format.h"
#include "leat/engine/loader_machine.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// Assumptions, since nothing has been read from a tier yet: for memory,
/// checksums included; for a disk, the least of most that can be rented.
constexpr double kRamBytesPerSecond = 4e9;
constexpr double kDiskBytesPerSecond = 400e6;
/// The rate of the thread that writes records: a copy and a checksum.
constexpr double kWriteBytesPerSecond = 2e9;

double seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

double cost_of(double bytes) {
  return static_cast<double>(record_cost(static_cast<std::uint64_t>(bytes)));
}

}  // namespace

Result<void> Loader::Machine::open_form(
    const std::vector<DeliveredField>& with) {
  if (!options.cache || has_form) return {};
  RecordCache* const records = this->records();
  const bool is_for = DecodedForm::is_for(with);
  LEAT_CHECK(options.cache->form.has_value());
  if (options.cache->form == CacheForm::kDecoded && !is_for) {
    return Error(
        ErrorCode::kInvalidArgument,
        "the cache's form is decoded, but no field begins with decode_image, "
        "or one shares its column with a field that is cut elsewhere; only "
        "pictures are kept decoded: leave form= out");
  }
  if (options.cache->form == CacheForm::kDecoded && records == nullptr) {
    return Error(ErrorCode::kInvalidArgument,
                 "the cache's form is decoded, but there are only peers, which "
                 "keep bytes; give ram= or disk=");
  }
  has_form = true;
  if (options.cache->form == CacheForm::kEncoded || !is_for ||
      records == nullptr) {
    return {};
  }
  decoded = std::make_unique<DecodedForm>(*records, with);
  if (dataset.catalogue != nullptr) form_samples = dataset.catalogue->samples();
  // A piece of a shard is read for all its samples, or for none.
  const bool has_pieces =
      dataset.catalogue == nullptr ||
      (blocks != nullptr && dataset.catalogue->layout() == Layout::kShards);
  form_may_mix = !has_pieces || rank.world_size > 1;
  if (!options.cache->disk.empty()) decoded->keep_for_later_runs();
  if (options.cache->form == CacheForm::kDecoded) {
    decoded->keep_share(1);
  } else {
    decoded->begin_trials(
        [this](const DecodedForm::Findings& found) { choose_form_by(found); });
  }
  return {};
}

/// The part of the tiers' capacity that this job may use: less under an agent,
/// or if others write to the same folder. `rates` has add_counts().
double Loader::Machine::form_bytes(const LoaderRates& rates) const {
  const auto limit = static_cast<double>(cache_bytes);
  const auto most = static_cast<double>(most_cache.ram_bytes.value_or(0) +
                                        most_cache.disk_bytes.value_or(0));
  // Records of the other jobs in a shared cache answer this job, too.
  if (most == 0 || !shared_cache.empty()) return limit;
  const auto allowed_now =
      static_cast<double>(rates.ram_allowed_bytes + rates.disk_allowed_bytes);
  return limit * std::min(1.0, allowed_now / most);
}

// On the thread that ended the last trial. Reads nothing that changes but
// counters.
void Loader::Machine::choose_form_by(const DecodedForm::Findings& found) {
  const auto tell = [this](const std::string& what) {
    (rank.rank == 0 ? log_info : log_debug)("the cache keeps samples " + what);
  };
  FormChosen taken{
      .decision = {.at_seconds = seconds(SteadyClock().now() - opened_at),
                   .setting = Setting::kDecodedShare},
      .epoch = found.epoch};
  if (2 * found.with_record < found.tried) {
    taken.decision.reason =
        fmt::format("encoded: of {} samples, {} could be kept decoded",
                    found.tried, found.with_record);
    tell(taken.decision.reason);
    const MutexLock lock(choosing);
    form_chosen = std::move(taken);
    return;
  }
  FormCosts costs = found.costs;
  LoaderRates rates;
  add_counts(rates);
  if (rates.read_bytes != 0) {  // Else nothing had to be fetched so far.
    costs.fetch_seconds =
        seconds(rates.read_time) / static_cast<double>(rates.read_bytes) *
        costs.encoded_bytes / static_cast<double>(usual.in_flight);
  }
  // For shards that are being indexed: as many as if all were like these.
  const std::uint64_t samples = form_samples.value_or(
      static_cast<std::uint64_t>(static_cast<double>(data_bytes) /
                                 std::max(1.0, costs.encoded_bytes)));
  costs.before_seconds += costs.decoded_bytes / kWriteBytesPerSecond;
  costs.encoded_bytes = cost_of(costs.encoded_bytes);
  costs.decoded_bytes = cost_of(costs.decoded_bytes);
  const FormLimits limits = {
      .samples = samples * decoded->columns(),
      .cache_bytes = form_bytes(rates),
      .cores = std::min(static_cast<double>(most_share.threads),
                        static_cast<double>(usual.cores) / usual.local_ranks),
      .hit_bytes_per_second = options.cache->disk.empty() ? kRamBytesPerSecond
                                                          : kDiskBytesPerSecond,
      .epochs = options.epochs
                    ? *options.epochs - std::min(*options.epochs, found.epoch)
                    : 0,
      .may_mix = form_may_mix};
  const FormChoice choice = choose_form(costs, limits);
  taken.decision.after = choice.decoded_share;
  taken.decision.reason = explain_form(costs, limits, choice);
  tell(taken.decision.reason);
  if (choice.decoded_share != 0) {
    taken.encoded_seconds = predict_form(costs, limits, 0).seconds;
    taken.cores = limits.cores;
    taken.decision.expected_gain = taken.encoded_seconds / choice.seconds - 1;
  }
  {
    const MutexLock lock(choosing);
    form_chosen = std::move(taken);
  }
  if (choice.decoded_share != 0) decoded->keep_share(choice.decoded_share);
}

// The epoch after the choice still makes records. The loader cannot measure
// all-encoded beside it, so it compares with the model's prediction of that. If
// training takes the time, it compares the time of cores.
void Loader::Machine::judge_form(const EpochStats& at) {
  constexpr double kWaits = 0.05;
  const MutexLock lock(choosing);
  if (!form_chosen || form_chosen->decision.found_gain ||
      form_chosen->encoded_seconds <= 0 || at.samples == 0 ||
      at.epoch <= form_chosen->epoch + 1) {
    return;
  }
  const auto samples = static_cast<double>(at.samples);
  const double took =
      at.wait_fraction() >= kWaits
          ? seconds(at.elapsed) / samples
          : seconds(at.threads.cpu) / samples / form_chosen->cores;
  if (took <= 0) return;
  form_chosen->decision.found_gain = form_chosen->encoded_seconds / took - 1;
}

}  // namespace leat
