// Checks that options which decide the order and place of samples agree.

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "leat/base/errors.h"
#include "leat/engine/loader/job.h"
#include "leat/engine/read_sizes.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// Each position is looked up once a step: this many take a tenth of a second.
constexpr std::uint64_t kMostWithin = std::uint64_t{1} << 18;

}  // namespace

Result<void> check_locality(const Job& job) {
  if (!deals_to_holders(job.options.locality)) return {};
  const std::string name =
      fmt::format("locality=\"{}\"", to_string(job.options.locality));
  const bool has_tier =
      job.options.cache &&
      (job.options.cache->is_auto || job.options.cache->ram_bytes != 0 ||
       !job.options.cache->disk.empty());
  if (!has_tier) {
    return invalid(name +
                   " deals samples to the ranks whose cache holds them, and "
                   "there is none; give cache= with ram= or disk=");
  }
  if (job.options.cache->form.value_or(CacheForm::kEncoded) !=
      CacheForm::kEncoded) {
    return invalid(name +
                   " simulates caches of bytes, and this one may keep samples "
                   "decoded; leave form= out");
  }
  if (job.options.cache->is_auto || (!job.options.cache->disk.empty() &&
                                     !job.options.cache->disk_limit_bytes)) {
    return invalid(
        name +
        " needs caches of the same size on all nodes, and here each would "
        "choose its own; give cache= with ram=, or disk= and disk_limit=");
  }
  return {};
}

Result<void> check_drawn(const Job& job, const Dataset& dataset) {
  if (job.order.shuffle != Shuffle::kDrawn) return {};
  constexpr std::string_view by = "sampler=";
  if (dataset.catalogue == nullptr) {
    return invalid(
        "{} counts samples, and these shards have no index yet; make one with "
        "`leat index`",
        by);
  }
  const std::uint64_t samples = dataset.catalogue->samples();
  if (job.options.weights != nullptr &&
      job.options.weights->samples() != samples) {
    return invalid(
        "weights= has {} weights, and {} has {} samples; give one for each",
        job.options.weights->samples(), dataset.url, samples);
  }
  const auto cannot = [&](std::string_view what) {
    return invalid(
        "{} and {} both say which samples come when, and where; leave one out",
        by, what);
  };
  if (job.locality() != Locality::kNone) {
    return cannot(
        fmt::format("locality=\"{}\"", to_string(job.options.locality)));
  }
  if (!job.options.cache) return {};
  if (job.first_within() != 0) return cannot("first_within= of a cache");
  if (job.options.cache->placement != Placement::kAny) {
    return cannot("placement= of a cache");
  }
  if (job.options.cache->peer_placement == PeerPlacement::kFrequency) {
    return cannot("peer_placement=\"frequency\" of a cache");
  }
  return {};
}

Result<void> check_first_within(const Job& job, const Catalogue* catalogue) {
  const std::uint64_t within = job.first_within();
  if (within == 0) return {};
  if (within > kMostWithin) {
    return invalid("first_within={} of a cache; at most {}", within,
                   kMostWithin);
  }
  if (job.options.locality != Locality::kNone) {
    return invalid(
        "first_within={} of a cache and locality=\"{}\" both say which samples "
        "come when; leave one out",
        within, to_string(job.options.locality));
  }
  const bool has_shards =
      catalogue == nullptr || catalogue->layout() == Layout::kShards;
  if (has_shards && job.order.shuffle != Shuffle::kFull) {
    return invalid(
        "first_within={} of a cache needs samples that are read one by one, "
        "and these shards are read in pieces; give shuffle=\"full\", or leave "
        "it out",
        within);
  }
  (job.rank.rank == 0 ? log_warning : log_debug)(fmt::format(
      "first_within={}: samples that are cached come up to {} positions before "
      "their turn, so the order depends on the cache, not on the seed alone; "
      "each epoch is still a permutation, and a state says where it stands",
      within, within - 1));
  return {};
}

Result<void> check_fetch_ahead(const Job& job, const Catalogue* catalogue) {
  if (!job.options.fetch_ahead) return {};
  const auto rule = FetchAhead::make(*job.options.fetch_ahead);
  if (!rule) {
    return Error(rule.error()).while_doing("reading ahead (fetch_ahead=)");
  }
  if (catalogue == nullptr) {
    return invalid(
        "fetch_ahead= counts samples, and these shards have no index yet; make "
        "one with `leat index`, or leave it out");
  }
  if (job.reads_pieces(catalogue->layout())) {
    return invalid(
        "fetch_ahead= asks for samples, and one rank reads shards in pieces of "
        "many; give shuffle=\"full\", which reads each by itself, or leave it "
        "out");
  }
  return {};
}

}  // namespace leat
