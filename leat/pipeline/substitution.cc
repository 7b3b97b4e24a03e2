#include "leat/pipeline/substitution.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "leat/dataset/sample_version.h"

namespace leat {
namespace {

/// In a row. A function that keeps one sample in 50 stays far below it.
constexpr std::uint32_t kMostTries = 1000;

}  // namespace

bool may_pass_over(const RunContext& context) {
  if (context.keeps_samples) return false;
  return context.on_error == OnError::kSubstitute ||
         std::ranges::any_of(context.fields, [](const DeliveredField& field) {
           return field.source == FieldSource::kValue;
         });
}

bool may_replace(const RunContext& context, const SampleWork& sample,
                 const Error& failed) {
  if (context.keeps_samples) return false;
  const std::optional<Excluded> why = exclusion_by(failed.code());
  return sample.tries < kMostTries &&
         (why == Excluded::kSkipped ||
          (why == Excluded::kBad && context.on_error == OnError::kSubstitute));
}

void exclude(const RunContext& context, SampleWork& sample) {
  const Error failed = *sample.error();
  const Excluded why = *exclusion_by(failed.code());
  context.excluded.add(
      {.sample = context.in_dataset(sample.id),
       .why = why,
       .key = std::string(context.catalogue.key(sample.id)),
       .cause = failed.message(),
       .version = sample_version(context.catalogue, sample.id).hex()});
  if (!sample.excluded) sample.excluded = why;
}

bool take_next(const RunContext& context, const EpochOrder& order,
               BatchWork& batch, SampleWork& sample) {
  if (!sample.substitutes) {
    sample.substitutes.emplace(context.seed, batch.epoch, context.first_sample,
                               sample.position);
  }
  while (sample.tries < kMostTries) {
    ++sample.tries;
    const std::optional<SampleId> next = sample.substitutes->next(order);
    if (!next) sample.tries = kMostTries;
    if (!next) break;
    if (context.excluded.find(context.in_dataset(*next))) continue;
    batch.begin_again(sample, *next);
    return true;
  }
  const std::string why = fmt::format(
      "it is passed over, and so are {} that were drawn for its place",
      kMostTries);
  const std::optional<Error> last = sample.error();
  batch.begin_again(sample, sample.planned);
  if (last) {
    sample.fail(Error(last->code(), why + "; the last: " + last->message())
                    .because_of(last->cause()));
  } else {
    sample.fail(Error(*sample.excluded == Excluded::kSkipped
                          ? ErrorCode::kSkipped
                          : ErrorCode::kCorrupt,
                      why));
  }
  return false;
}

}  // namespace leat
