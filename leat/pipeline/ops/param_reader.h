// Reads the parameters of one op by the table.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/check.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/op_table.h"

namespace leat {

/// A word allowed for a parameter, and its meaning.
template <class T>
struct Choice {
  std::string_view name;
  T value;
};

/// The first error is kept, and later reads return defaults.
///
/// Threads: one.
class ParamReader {
 public:
  ParamReader(const OpInfo& op, const nlohmann::json& given)
      : op_(op), given_(given) {
    for (const auto& [name, value] : given.items()) {
      if (find_param(op, name) == nullptr) {
        fail(fmt::format("has no parameter '{}'; it has {}", name,
                         param_names(op)));
      }
    }
  }

  const std::optional<Error>& error() const { return error_; }

  std::string text(std::string_view name) {
    const nlohmann::json value = value_of(name);
    if (!value.is_string()) {
      fail_value(name, value, "must be a string");
      return {};
    }
    return value.get<std::string>();
  }

  template <class T, std::size_t kCount>
  T choice(std::string_view name, const Choice<T> (&choices)[kCount]) {
    const nlohmann::json value = value_of(name);
    std::string names;
    for (const Choice<T>& choice : choices) {
      if (value.is_string() && value.get<std::string>() == choice.name) {
        return choice.value;
      }
      names += names.empty() ? "" : ", ";
      names += choice.name;
    }
    fail_value(name, value, "must be one of " + names);
    return choices[0].value;
  }

  std::vector<std::string> names(std::string_view name) {
    const nlohmann::json value = value_of(name);
    std::vector<std::string> names;
    for (const nlohmann::json& one : value) {
      if (!value.is_array() || !one.is_string()) {
        fail_value(name, value, "must be a list of names");
        return {};
      }
      names.push_back(one.get<std::string>());
    }
    return names;
  }

  /// The parameter `ragged` of an op that has it.
  Joining joining() {
    return flag("ragged") ? Joining::kRagged : Joining::kStack;
  }

  bool flag(std::string_view name) {
    const nlohmann::json value = value_of(name);
    if (value.is_boolean()) return value.get<bool>();
    fail_value(name, value, "must be true or false");
    return false;
  }

  std::uint64_t count(std::string_view name) {
    const nlohmann::json value = value_of(name);
    if (value.is_number_integer() && value.get<std::int64_t>() > 0) {
      return value.get<std::uint64_t>();
    }
    fail_value(name, value, "must be a whole number above 0");
    return 1;
  }

  double number(std::string_view name, double low, double high) {
    const nlohmann::json value = value_of(name);
    const double number = number_in(value);
    if (number >= low && number <= high) return number;
    fail_value(name, value, fmt::format("must be from {} to {}", low, high));
    return low;
  }

  std::array<double, 2> range(std::string_view name, double most) {
    const nlohmann::json value = value_of(name);
    if (value.is_array() && value.size() == 2) {
      const double low = number_in(value[0]);
      const double high = number_in(value[1]);
      if (low > 0 && low <= high && high <= most) return {low, high};
    }
    fail_value(name, value,
               fmt::format("must be two numbers, 0 < low <= high <= {}", most));
    return {1, 1};
  }

  /// A side alone is returned in `*side` if that is given, else it is a square.
  PixelSize size(std::string_view name, std::uint32_t* side) {
    const nlohmann::json value = value_of(name);
    if (const std::uint32_t one = side_in(value)) {
      if (side == nullptr) return {one, one};
      *side = one;
      return {};
    }
    if (value.is_array() && value.size() == 2) {
      const PixelSize size{side_in(value[1]), side_in(value[0])};
      if (size.width != 0 && size.height != 0) return size;
    }
    fail_value(name, value,
               fmt::format("must be a side from 1 to {} pixels, or [height, "
                           "width]",
                           kMostSide));
    return {1, 1};
  }

  /// Empty if not given.
  std::vector<double> numbers(std::string_view name,
                              const std::vector<double>& imagenet) {
    const nlohmann::json value = value_of(name);
    if (value.is_null()) return {};
    if (value == "imagenet") return imagenet;
    const nlohmann::json list =
        value.is_array() ? value : nlohmann::json::array({value});
    std::vector<double> numbers;
    for (const nlohmann::json& entry : list)
      numbers.push_back(number_in(entry));
    for (const double number : numbers) {
      if (!std::isfinite(number)) numbers.clear();
    }
    if (numbers.size() != 1 && numbers.size() != 3) {
      fail_value(name, value, "must be 1 or 3 numbers, or \"imagenet\"");
    }
    return numbers;
  }

  /// A given count of finite numbers; a single one needs no list. Empty if the
  /// value is null.
  std::vector<double> number_list(std::string_view name,
                                  std::initializer_list<std::size_t> counts) {
    const nlohmann::json value = value_of(name);
    if (value.is_null()) return {};
    const nlohmann::json list =
        value.is_array() ? value : nlohmann::json::array({value});
    std::vector<double> numbers;
    for (const nlohmann::json& entry : list) {
      numbers.push_back(number_in(entry));
    }
    const bool are_finite = std::ranges::all_of(
        numbers, [](double number) { return std::isfinite(number); });
    if (are_finite &&
        std::find(counts.begin(), counts.end(), list.size()) != counts.end()) {
      return numbers;
    }
    fail_value(name, value,
               fmt::format("must be {} numbers", fmt::join(counts, " or ")));
    return std::vector<double>(*counts.begin(), 0);
  }

  /// One number, or several, each from 0 to `most`. REQUIRES: 1 is in `counts`.
  std::vector<std::uint32_t> whole_numbers(
      std::string_view name, std::uint32_t most,
      std::initializer_list<std::size_t> counts) {
    const nlohmann::json value = value_of(name);
    const nlohmann::json list =
        value.is_array() ? value : nlohmann::json::array({value});
    std::vector<std::uint32_t> numbers;
    for (const nlohmann::json& entry : list) {
      if (!entry.is_number_integer() || entry.get<std::int64_t>() < 0 ||
          entry.get<std::int64_t>() > most) {
        break;
      }
      numbers.push_back(entry.get<std::uint32_t>());
    }
    if (numbers.size() == list.size() &&
        std::find(counts.begin(), counts.end(), list.size()) != counts.end()) {
      return numbers;
    }
    fail_value(name, value,
               fmt::format("must be {} whole numbers from 0 to {}",
                           fmt::join(counts, " or "), most));
    return {0};
  }

  /// A number x for `centre` - x to `centre` + x, or the bounds themselves;
  /// clamped at `low`; beyond `high` it is an error.
  std::array<double, 2> jitter(std::string_view name, double centre, double low,
                               double high) {
    const nlohmann::json value = value_of(name);
    if (const double reach = number_in(value); reach >= 0) {
      const std::array<double, 2> bounds = {centre - reach, centre + reach};
      // As in torchvision, a factor is clamped at 0, but a hue out of
      // range is an error.
      if (centre > 0 && bounds[1] <= high) {
        return {std::max(bounds[0], low), bounds[1]};
      }
      if (bounds[0] >= low && bounds[1] <= high) return bounds;
    }
    if (value.is_array() && value.size() == 2) {
      const std::array<double, 2> bounds = {number_in(value[0]),
                                            number_in(value[1])};
      if (low <= bounds[0] && bounds[0] <= bounds[1] && bounds[1] <= high) {
        return bounds;
      }
    }
    fail_value(name, value,
               fmt::format("must be a number from 0 on, or two bounds, low <= "
                           "high, within {} to {}",
                           low, high));
    return {centre, centre};
  }

  void fail(std::string_view what) {
    if (error_) return;
    error_.emplace(ErrorCode::kInvalidArgument,
                   fmt::format("{} {}", op_.name, what));
  }

  bool is_null(std::string_view name) { return value_of(name).is_null(); }

  bool was_given(std::string_view name, std::string_view value) const {
    const auto found = given_.find(std::string(name));
    return found != given_.end() && *found == value;
  }

 private:
  static constexpr std::int64_t kMostSide = 65'535;

  nlohmann::json value_of(std::string_view name) {
    const auto found = given_.find(std::string(name));
    if (found != given_.end()) return *found;
    const ParamInfo* param = find_param(op_, name);
    LEAT_CHECK(param != nullptr);
    if (!param->default_json.empty())
      return nlohmann::json::parse(param->default_json);
    fail(fmt::format("needs '{}': {}", name, param->doc));
    return {};
  }

  static double number_in(const nlohmann::json& value) {
    return value.is_number() ? value.get<double>() : std::nan("");
  }

  /// 0 if it is not a side.
  static std::uint32_t side_in(const nlohmann::json& value) {
    if (!value.is_number_integer()) return 0;
    const auto side = value.get<std::int64_t>();
    return side > 0 && side <= kMostSide ? static_cast<std::uint32_t>(side) : 0;
  }

  void fail_value(std::string_view name, const nlohmann::json& value,
                  std::string_view what) {
    fail(fmt::format("{}={} {}", name, value.dump(), what));
  }

  const OpInfo& op_;
  const nlohmann::json& given_;
  std::optional<Error> error_;
};

}  // namespace leat
