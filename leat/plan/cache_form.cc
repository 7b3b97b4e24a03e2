#include "leat/plan/cache_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "leat/base/units.h"

namespace leat {
namespace {

/// Less than this, and the next run would say the opposite.
constexpr double kMargin = 0.02;
constexpr int kSteps = 16;

double bytes_a_sample(const FormCosts& costs, double decoded_share) {
  return decoded_share * costs.decoded_bytes +
         (1 - decoded_share) * costs.encoded_bytes;
}

/// The largest share with which all samples fit.
double share_that_fits(const FormCosts& costs, const FormLimits& limits) {
  const double more = costs.decoded_bytes - costs.encoded_bytes;
  const double room = limits.cache_bytes / static_cast<double>(limits.samples) -
                      costs.encoded_bytes;
  if (more <= 0) return room + more >= 0 ? 1 : 0;
  return std::clamp(room / more, 0.0, 1.0);
}

std::string name_of(double share) {
  if (share == 0) return "encoded";
  if (share == 1) return "decoded";
  return fmt::format("decoded for {:.0f} % of the samples", 100 * share);
}

}  // namespace

FormChoice predict_form(const FormCosts& costs, const FormLimits& limits,
                        double decoded_share) {
  FormChoice choice{.decoded_share = decoded_share};
  const double wanted = static_cast<double>(limits.samples) *
                        bytes_a_sample(costs, decoded_share);
  choice.hit_share =
      wanted <= limits.cache_bytes ? 1 : limits.cache_bytes / wanted;
  const double missed = 1 - choice.hit_share;
  choice.core_seconds =
      decoded_share * (costs.rest_seconds + missed * costs.before_seconds) +
      (1 - decoded_share) * costs.whole_seconds;
  choice.seconds = std::max(missed * costs.fetch_seconds,
                            choice.core_seconds / limits.cores);
  if (limits.hit_bytes_per_second > 0) {
    choice.seconds =
        std::max(choice.seconds, choice.hit_share *
                                     bytes_a_sample(costs, decoded_share) /
                                     limits.hit_bytes_per_second);
  }
  choice.first_core_seconds =
      decoded_share * (costs.rest_seconds + costs.before_seconds) +
      (1 - decoded_share) * costs.whole_seconds;
  choice.first_seconds =
      std::max(costs.fetch_seconds, choice.first_core_seconds / limits.cores);
  return choice;
}

FormChoice choose_form(const FormCosts& costs, const FormLimits& limits) {
  std::vector<double> shares = {0, 1};
  if (limits.may_mix) {
    for (int i = 1; i < kSteps; ++i) {
      shares.push_back(static_cast<double>(i) / kSteps);
    }
    shares.push_back(share_that_fits(costs, limits));
  }
  std::ranges::sort(shares);
  std::vector<FormChoice> choices;
  choices.reserve(shares.size());
  for (const double share : shares) {
    choices.push_back(predict_form(costs, limits, share));
  }
  const auto overall = [&](double first, double later) {
    const auto epochs = static_cast<double>(limits.epochs);
    return limits.epochs == 0 ? later : (first + (epochs - 1) * later) / epochs;
  };
  const auto keep_least = [&](const auto& of) {
    const double least = of(*std::ranges::min_element(choices, {}, of));
    std::erase_if(choices, [&](const FormChoice& choice) {
      return of(choice) > least * (1 + kMargin);
    });
  };
  keep_least([&](const FormChoice& choice) {
    return overall(choice.first_seconds, choice.seconds);
  });
  keep_least([&](const FormChoice& choice) {
    return overall(choice.first_core_seconds, choice.core_seconds);
  });
  return choices.front();
}

std::string explain_form(const FormCosts& costs, const FormLimits& limits,
                         const FormChoice& choice) {
  const FormChoice encoded = predict_form(costs, limits, 0);
  const FormChoice decoded = predict_form(costs, limits, 1);
  const auto size = [](double bytes) {
    return format_bytes(static_cast<std::uint64_t>(bytes));
  };
  const auto told = [](const FormChoice& one) {
    return fmt::format("hits {:.0f} %, {:.2f} ms a sample, {:.2f} of a core",
                       100 * one.hit_share, 1e3 * one.seconds,
                       1e3 * one.core_seconds);
  };
  std::string text = fmt::format(
      "{}: {} for {} samples of {}, decoded {}; encoded: {}; decoded: {}",
      name_of(choice.decoded_share), size(limits.cache_bytes), limits.samples,
      size(costs.encoded_bytes), size(costs.decoded_bytes), told(encoded),
      told(decoded));
  if (choice.decoded_share > 0 && choice.decoded_share < 1) {
    text += "; both: " + told(choice);
  }
  if (limits.epochs != 0) {
    text += fmt::format(
        "; the first of {} epochs: encoded {:.2f} ms a sample, decoded {:.2f}",
        limits.epochs, 1e3 * encoded.first_seconds,
        1e3 * decoded.first_seconds);
  }
  return text;
}

}  // namespace leat
