// When to make an existing catalogue anew.
#pragma once
#include <chrono>
#include <optional>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

/// How old a catalogue may be to be used as it is. A value.
class Refresh {
 public:
  /// A cheap look at the store tells whether the catalogue is still valid.
  static Refresh automatic() {
    Refresh refresh(std::nullopt);
    refresh.is_checked_ = true;
    return refresh;
  }
  static Refresh never() { return Refresh(std::nullopt); }
  static Refresh always() { return Refresh(std::chrono::seconds(0)); }
  static Refresh if_older_than(std::chrono::seconds age) {
    return Refresh(age);
  }

  /// Reads "auto", "never", "always", "if-older-than:1d"; units are s, m, h and
  /// d.
  ///
  /// Errors: kInvalidArgument for anything else; lists what is allowed.
  static Result<Refresh> parse(std::string_view text);

  /// True if catalogues are not even looked at.
  bool is_always() const {
    return most_age_ && *most_age_ == std::chrono::seconds(0);
  }

  bool is_automatic() const { return is_checked_; }

  /// True if a catalogue written at `made_at` may be used at `now`. A catalogue
  /// of unknown age (`made_at` at the epoch, or a minute or more to come: a
  /// clock was ahead) counts as too old.
  bool accepts(std::chrono::sys_seconds made_at,
               std::chrono::sys_seconds now) const {
    if (!most_age_) return true;
    if (is_always() || made_at == std::chrono::sys_seconds()) return false;
    if (made_at > now + kMostAhead) return false;
    return now - made_at <= *most_age_;
  }

 private:
  /// Clocks of machines differ by less.
  static constexpr std::chrono::seconds kMostAhead{60};

  explicit Refresh(std::optional<std::chrono::seconds> most_age)
      : most_age_(most_age) {}

  std::optional<std::chrono::seconds> most_age_;  ///< Nullopt: any.
  bool is_checked_ = false;
};

}  // namespace leat
