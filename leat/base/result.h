// A value or an Error. Close to std::expected, so that the C++23 move is
// mechanical.
#pragma once
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "leat/base/check.h"
#include "leat/base/error.h"

namespace leat {

/// Either a `T` or why there is none.
///
/// Asking for the one that is not there is a bug and aborts.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  template <class U = T>
  requires(!std::is_same_v<std::remove_cvref_t<U>, Result> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error> &&
           std::is_constructible_v<T, U&&>) Result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & {
    LEAT_CHECK(has_value());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    LEAT_CHECK(has_value());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    LEAT_CHECK(has_value());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    LEAT_CHECK(!has_value());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    LEAT_CHECK(!has_value());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

/// Success, or why not.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const& {
    LEAT_CHECK(error_.has_value());
    return *error_;
  }
  Error&& error() && {
    LEAT_CHECK(error_.has_value());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace leat

#define LEAT_INTERNAL_JOIN2(a, b) a##b
#define LEAT_INTERNAL_JOIN(a, b) LEAT_INTERNAL_JOIN2(a, b)
#define LEAT_INTERNAL_TRY(name, target, expression) \
  auto name = (expression);                         \
  if (!name) [[unlikely]]                           \
    return std::move(name).error();                 \
  target = *std::move(name)

/// `LEAT_TRY(const int n, parse(text));` declares `n`, or returns the error.
#define LEAT_TRY(target, ...)                                        \
  LEAT_INTERNAL_TRY(LEAT_INTERNAL_JOIN(leat_try_, __LINE__), target, \
                    (__VA_ARGS__))

/// The same where success carries no value.
#define LEAT_TRY_VOID(...)                                  \
  do {                                                      \
    if (auto leat_try_void = (__VA_ARGS__); !leat_try_void) \
      return std::move(leat_try_void).error();              \
  } while (false)
