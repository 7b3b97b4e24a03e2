#include "leat/engine/loader/cache_form_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/cache/cached_store.h"
#include "leat/cache/segment_format.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// Assumed until something has been read from a tier: for memory, checksums
/// included; for a disk, what almost every rented disk gives.
constexpr double kRamBytesPerSecond = 4e9;
constexpr double kDiskBytesPerSecond = 400e6;
/// The speed of the thread that writes records: a copy and a checksum.
constexpr double kWriteBytesPerSecond = 2e9;

double cost_of(double bytes) {
  return static_cast<double>(record_cost(static_cast<std::uint64_t>(bytes)));
}

}  // namespace

CacheFormChoice::CacheFormChoice(const Job& job, const Opened& opened,
                                 const Control& control, TimePoint opened_at)
    : job_(job), opened_(opened), control_(control), opened_at_(opened_at) {}

DecodedForm* CacheFormChoice::decoded() const {
  const MutexLock lock(mutex_);
  return decoded_.get();
}

Result<void> CacheFormChoice::open(const std::vector<DeliveredField>& fields,
                                   const Schedule& schedule) {
  const MutexLock lock(mutex_);
  const auto& cache = job_.options.cache;
  if (!cache || is_settled_) return {};
  RecordCache* const records = opened_.store.cached;
  const bool is_for = DecodedForm::is_for(fields);
  LEAT_CHECK(cache->form.has_value());
  if (cache->form == CacheForm::kDecoded && !is_for) {
    return invalid(
        "the cache's form is decoded, but no field begins with decode_image, "
        "or one shares its column with a field that is cut elsewhere; only "
        "pictures are kept decoded: leave form= out");
  }
  if (cache->form == CacheForm::kDecoded && records == nullptr) {
    return invalid(
        "the cache's form is decoded, but there are only peers, which keep "
        "bytes; give ram= or disk=");
  }
  is_settled_ = true;
  if (cache->form == CacheForm::kEncoded || !is_for || records == nullptr) {
    return {};
  }
  decoded_ = std::make_unique<DecodedForm>(*records, fields);
  const Catalogue* const catalogue = schedule.catalogue();
  if (catalogue != nullptr) samples_ = catalogue->samples();
  // Either all samples of a piece of a shard are fetched, or none.
  const bool has_pieces =
      catalogue == nullptr ||
      (schedule.blocks() != nullptr && catalogue->layout() == Layout::kShards);
  may_mix_ = !has_pieces || job_.rank.world_size > 1;
  if (!cache->disk.empty()) decoded_->keep_for_later_runs();
  if (cache->form == CacheForm::kDecoded) {
    decoded_->keep_share(1);
  } else {
    decoded_->begin_trials(
        [this](const DecodedForm::Findings& found) { choose_by(found); });
  }
  return {};
}

/// The part of the tiers' limit that this job may use: less under an agent, or
/// where others write to the same folder.
double CacheFormChoice::cache_bytes_of_job(const LoaderTotals& totals) const {
  const auto limit = static_cast<double>(opened_.cache_bytes);
  const auto most = static_cast<double>(opened_.tiers.ram_bytes.value_or(0) +
                                        opened_.tiers.disk_bytes.value_or(0));
  // A shared cache also serves this job the records of others.
  if (most == 0 || !opened_.shared_cache.empty()) return limit;
  const auto allowed_now =
      static_cast<double>(totals.ram_allowed_bytes + totals.disk_allowed_bytes);
  return limit * std::min(1.0, allowed_now / most);
}

void CacheFormChoice::choose_by(const DecodedForm::Findings& found) {
  Decision decision;
  DecodedForm* decoded = nullptr;
  {
    const MutexLock lock(mutex_);
    chosen_ = chosen_by(found);
    decision = chosen_->decision;
    decoded = decoded_.get();
  }
  const std::string line = "the cache keeps samples " + decision.reason;
  (job_.rank.rank == 0 ? log_info : log_debug)(line);
  if (decision.after != 0) decoded->keep_share(decision.after);
}

/// The measured costs, as bytes of a tier; `totals` give the cost of
/// fetching.
FormCosts CacheFormChoice::costs_by(const DecodedForm::Findings& found,
                                    const LoaderTotals& totals) const {
  FormCosts costs = found.costs;
  if (totals.read_bytes != 0) {  // Otherwise nothing has been fetched so far.
    costs.fetch_seconds =
        to_seconds(totals.read_time) / static_cast<double>(totals.read_bytes) *
        costs.encoded_bytes / static_cast<double>(control_.usual().in_flight);
  }
  costs.before_seconds += costs.decoded_bytes / kWriteBytesPerSecond;
  costs.encoded_bytes = cost_of(costs.encoded_bytes);
  costs.decoded_bytes = cost_of(costs.decoded_bytes);
  return costs;
}

CacheFormChoice::Chosen CacheFormChoice::chosen_by(
    const DecodedForm::Findings& found) const {
  Chosen taken{
      .decision = {.at_seconds = to_seconds(SteadyClock().now() - opened_at_),
                   .setting = Setting::kDecodedShare},
      .epoch = found.epoch};
  if (2 * found.with_record < found.tried) {
    taken.decision.reason =
        fmt::format("encoded: of {} samples, {} could be kept decoded",
                    found.tried, found.with_record);
    return taken;
  }
  LoaderTotals totals;
  add_counts(*opened_.metrics, totals);
  const FormCosts costs = costs_by(found, totals);
  // Shards that are still being indexed are assumed to have similar samples.
  const std::uint64_t samples = samples_.value_or(
      static_cast<std::uint64_t>(static_cast<double>(job_.data_bytes) /
                                 std::max(1.0, found.costs.encoded_bytes)));
  const RankLimits usual = control_.usual();
  const auto& epochs = job_.options.epochs;
  const FormLimits limits = {
      .samples = samples * decoded_->columns(),
      .cache_bytes = cache_bytes_of_job(totals),
      .cores = std::min(static_cast<double>(*control_.most().threads),
                        static_cast<double>(usual.cores) / usual.local_ranks),
      .hit_bytes_per_second = job_.options.cache->disk.empty()
                                  ? kRamBytesPerSecond
                                  : kDiskBytesPerSecond,
      .epochs = epochs ? *epochs - std::min(*epochs, found.epoch) : 0,
      .may_mix = may_mix_};
  const FormChoice choice = choose_form(costs, limits);
  taken.decision.after = choice.decoded_share;
  taken.decision.reason = explain_form(costs, limits, choice);
  if (choice.decoded_share != 0) {
    taken.encoded_seconds = predict_form(costs, limits, 0).seconds;
    taken.cores = limits.cores;
    taken.decision.expected_gain = taken.encoded_seconds / choice.seconds - 1;
  }
  return taken;
}

// The epoch after the choice still makes records. The all-encoded case cannot
// be measured alongside, so the gain is reported against the model. If training
// is the bottleneck, CPU seconds are compared.
void CacheFormChoice::judge(const EpochStats& at) {
  constexpr double kWaits = 0.05;
  const MutexLock lock(mutex_);
  if (!chosen_ || chosen_->decision.found_gain ||
      chosen_->encoded_seconds <= 0 || at.samples == 0 ||
      at.epoch <= chosen_->epoch + 1) {
    return;
  }
  const auto samples = static_cast<double>(at.samples);
  const double took =
      at.wait_fraction() >= kWaits
          ? to_seconds(at.elapsed) / samples
          : to_seconds(at.threads.cpu) / samples / chosen_->cores;
  if (took <= 0) return;
  chosen_->decision.found_gain = chosen_->encoded_seconds / took - 1;
}

std::optional<Decision> CacheFormChoice::decision() const {
  const MutexLock lock(mutex_);
  if (!chosen_) return std::nullopt;
  return chosen_->decision;
}

/// Further samples of `decoded_` are assumed to be as long, and to take as
/// long. Fields that are kept as bytes beside decoded ones are left out.
void CacheFormChoice::add_to(LoaderTotals& totals) const {
  const MutexLock lock(mutex_);
  const Metrics& metrics = *opened_.metrics;
  const auto sum_of = [&](Metric which) {
    return static_cast<double>(std::max<std::int64_t>(0, metrics.value(which)));
  };
  const double records = sum_of(Metric::kPipelineRecords);
  if (decoded_ == nullptr || records == 0 || !samples_) return;
  const double part = decoded_->share();
  if (part == 0) return;
  const auto columns = static_cast<double>(decoded_->columns());
  const auto samples = static_cast<double>(*samples_);
  totals.kept_bytes =
      part * columns * sum_of(Metric::kPipelineRecordBytes) / records +
      (1 - part) * static_cast<double>(job_.data_bytes) / samples;
  totals.saved_seconds = 1e-9 * part * columns *
                         sum_of(Metric::kPipelineRecordNanoseconds) / records;
  totals.decoded_hits = sum_of(Metric::kCacheDecodedHits) / (part * columns);
}

}  // namespace leat
