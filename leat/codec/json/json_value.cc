// The parser tells what it meets, from left to right. The path leads through
// the first `on_path_` of the open containers. If it leads through all of them,
// the next step of the path decides about the value that comes. The value at
// the end of the path goes to a NumberGrid or a string; all other values are
// ignored.

#include "leat/codec/json/json_value.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostDimensions = 8;

/// Gathers numbers and the shape of the arrays around them. Each call answers
/// with what is wrong, or nothing.
class NumberGrid {
 public:
  using Wrong = std::string_view;

  Wrong open() {
    if (level_ == kMostDimensions) return "nests more than 8 arrays";
    if (has_leaves_ && level_ == leaf_level_) return kUneven;
    if (level_ > 0) ++counts_[level_ - 1];
    counts_[level_++] = 0;
    deepest_ = std::max(deepest_, level_);
    return {};
  }

  Wrong close() {
    const std::int64_t count = counts_[--level_];
    std::optional<std::int64_t>& length = lengths_[level_];
    // An empty array has no numbers to say how deep they are.
    if (count == 0 && level_ + 1 < deepest_) return kUneven;
    if (length && *length != count) return kUneven;
    length = count;
    return {};
  }

  Wrong add(JsonNumber type, std::int64_t whole, double real) {
    if (has_leaves_ && level_ != leaf_level_) return kUneven;
    if (!has_leaves_ && level_ != deepest_) return kUneven;
    if (size_ == kMostJsonNumbers) {
      return "has more than 65536 numbers; keep such arrays as .npy";
    }
    if (!has_leaves_) type_ = type;
    if ((type_ == JsonNumber::kTruth) != (type == JsonNumber::kTruth)) {
      return "mixes true and false with numbers";
    }
    has_leaves_ = true;
    leaf_level_ = level_;
    if (level_ > 0) ++counts_[level_ - 1];
    if (type == JsonNumber::kReal && type_ == JsonNumber::kWhole) {
      real_.assign(whole_.begin(), whole_.end());
      whole_.clear();
      type_ = type;
    }
    ++size_;
    if (type_ == JsonNumber::kReal) {
      real_.push_back(real);
    } else {
      whole_.push_back(whole);
    }
    return {};
  }

  JsonNumbers take() {
    JsonNumbers numbers{.type = type_,
                        .shape = {},
                        .whole = std::move(whole_),
                        .real = std::move(real_)};
    for (std::size_t i = 0; i < deepest_; ++i) {
      numbers.shape.push_back(lengths_[i].value_or(0));
    }
    return numbers;
  }

 private:
  static constexpr Wrong kUneven =
      "holds arrays of unequal length or depth, which no array can be";

  std::int64_t counts_[kMostDimensions] = {};
  std::optional<std::int64_t> lengths_[kMostDimensions];
  std::size_t level_ = 0;    // Open arrays.
  std::size_t deepest_ = 0;  // Most that were open.
  bool has_leaves_ = false;
  std::size_t leaf_level_ = 0;
  std::size_t size_ = 0;
  JsonNumber type_ = JsonNumber::kWhole;
  std::vector<std::int64_t> whole_;
  std::vector<double> real_;
};

/// The parser's callbacks. Each answers whether the parser shall go on.
class ValueFinder final : public nlohmann::json_sax<Json> {
 public:
  explicit ValueFinder(const JsonPath& path) : path_(path) {
    indices_.reserve(path.size());
  }

  bool null() override {
    if (is_inside_grid()) return refuse("is an array with null in it");
    if (is_wanted()) return refuse("is null");
    return leave_value();
  }
  bool boolean(bool value) override {
    return number(JsonNumber::kTruth, value ? 1 : 0, 0);
  }
  bool number_integer(number_integer_t value) override {
    return number(JsonNumber::kWhole, value, static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      return beyond_int64();
    }
    return number_integer(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    // A whole number that is too large comes as this.
    if (text.find_first_of(".eE") == std::string::npos) return beyond_int64();
    return number(JsonNumber::kReal, 0, value);
  }
  bool string(string_t& value) override {
    if (is_inside_grid()) return refuse("is an array of texts");
    if (is_wanted()) {
      found_ = std::move(value);
    } else {
      pass_over();
    }
    return leave_value();
  }
  bool binary(binary_t&) override { return true; }  // Not in text.

  bool start_object(std::size_t) override {
    if (!enter()) return false;
    if (is_inside_grid()) return refuse("is an array of objects");
    if (is_wanted()) return refuse("is an object; say which of its keys");
    open(/*is_array=*/false);
    return true;
  }
  bool key(string_t& key) override {
    if (on_path_ == depth_) {
      const auto* wanted = std::get_if<std::string>(&path_[depth_ - 1]);
      is_next_ = wanted != nullptr && *wanted == key;
    }
    return true;
  }
  bool end_object() override {
    close();
    return leave_value();
  }

  bool start_array(std::size_t) override {
    if (!enter()) return false;
    if (is_inside_grid()) {
      ++depth_;
      return check(grid_->open());
    }
    if (is_wanted()) {
      grid_.emplace();
      found_.reset();
      grid_depth_ = depth_++;
      return check(grid_->open());
    }
    open(/*is_array=*/true);
    return true;
  }
  bool end_array() override {
    if (is_inside_grid()) {
      --depth_;
      if (!check(grid_->close())) return false;
      if (depth_ > grid_depth_) return true;
      found_ = grid_->take();
      grid_.reset();
    } else {
      close();
    }
    return leave_value();
  }

  bool parse_error(std::size_t position, const std::string&,
                   const Json::exception& error) override {
    // The library's message begins with its own name of the error.
    std::string_view what = error.what();
    const std::size_t end = what.find("] ");
    if (end != std::string_view::npos) what.remove_prefix(end + 2);
    what = what.substr(0, what.find("; last read"));  // Raw bytes.
    error_.emplace(ErrorCode::kCorrupt,
                   fmt::format("no JSON from byte {} on: {}", position, what));
    return false;
  }

  Result<JsonValue> take() {
    if (error_) return *std::move(error_);
    if (found_) return *std::move(found_);
    return not_found("the document has no {}", to_string(path_));
  }

 private:
  bool is_inside_grid() const { return grid_.has_value(); }

  /// Whether the value that comes is where the path leads: at its end if all
  /// steps were taken, else on its way.
  bool is_on_path() const {
    return !is_inside_grid() && on_path_ == depth_ && (depth_ == 0 || is_next_);
  }
  bool is_wanted() const { return is_on_path() && depth_ == path_.size(); }

  bool number(JsonNumber type, std::int64_t whole, double real) {
    if (is_inside_grid()) return check(grid_->add(type, whole, real));
    if (is_wanted()) {
      NumberGrid one;
      (void)one.add(type, whole, real);  // One number is always well.
      found_ = one.take();
    } else {
      pass_over();
    }
    return leave_value();
  }

  bool beyond_int64() {
    if (is_inside_grid() || is_wanted()) {
      return refuse("has a whole number beyond int64");
    }
    return leave_value();
  }

  bool enter() {
    if (depth_ < kMostJsonDepth) return true;
    error_.emplace(ErrorCode::kCorrupt,
                   fmt::format("nested more than {} deep", kMostJsonDepth));
    return false;
  }

  /// A container that is not our value but may lead to it.
  void open(bool is_array) {
    const bool leads = is_on_path();
    pass_over();
    ++depth_;
    if (!leads) return;
    ++on_path_;
    indices_.push_back(0);
    const auto* wanted = std::get_if<std::uint64_t>(&path_[depth_ - 1]);
    is_next_ = is_array && wanted != nullptr && *wanted == 0;
  }

  /// If keys are equal, the last one counts: the value behind an earlier one is
  /// dropped.
  void pass_over() {
    if (is_on_path()) found_.reset();
  }

  void close() {
    if (on_path_ == depth_) {
      --on_path_;
      indices_.pop_back();
    }
    --depth_;
  }

  /// After a value: the next one of an array that is on the path is its next
  /// index.
  bool leave_value() {
    if (on_path_ != depth_ || depth_ == 0 || is_inside_grid()) return true;
    const auto* wanted = std::get_if<std::uint64_t>(&path_[depth_ - 1]);
    is_next_ = wanted != nullptr && ++indices_.back() == *wanted;
    return true;
  }

  bool check(NumberGrid::Wrong wrong) { return wrong.empty() || refuse(wrong); }

  bool refuse(std::string_view what) {
    const std::string path = to_string(path_);
    error_.emplace(
        ErrorCode::kCorrupt,
        fmt::format("{} {}", path.empty() ? "the document" : path, what));
    return false;
  }

  const JsonPath& path_;
  std::size_t depth_ = 0;    // Open containers.
  std::size_t on_path_ = 0;  // The first of them, that the path leads through.
  std::vector<std::uint64_t> indices_;  // The index of the next value in each
                                        // of them.
  bool is_next_ = false;  // The value that comes is the path's next step.
  std::optional<NumberGrid> grid_;  // While the wanted array is open.
  std::size_t grid_depth_ = 0;
  std::optional<JsonValue> found_;
  std::optional<Error> error_;
};

}  // namespace

Result<JsonValue> find_json_value(std::span<const std::byte> document,
                                  const JsonPath& path) {
  const std::string_view text = as_text(document);
  ValueFinder finder(path);
  (void)Json::sax_parse(text.begin(), text.end(), &finder);
  return finder.take();
}

}  // namespace leat
