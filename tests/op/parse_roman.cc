// An op that no user wants, added as leat/pipeline/ops/README.md says: it reads
// numbers as Rome wrote them, up to a most.

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "leat/base/buffer.h"
#include "leat/pipeline/ops/param_reader.h"
#include "tests/op/kinds.h"

namespace leat {
namespace {

/// 0 for what is no numeral.
std::int64_t value_of(char numeral) {
  constexpr std::string_view kNumerals = "IVXLCDM";
  constexpr std::array kValues = {1, 5, 10, 50, 100, 500, 1000};
  const std::size_t at = kNumerals.find(numeral);
  return at == std::string_view::npos ? 0 : kValues[at];
}

class RomanProgram final : public Program {
 public:
  RomanProgram(std::uint64_t most, std::string field)
      : most_(static_cast<std::int64_t>(most)), field_(std::move(field)) {}

  std::optional<TensorSpec> output() const override {
    return TensorSpec{DType::kInt64, {}};
  }
  Result<TensorSpec> output_for(std::span<const std::byte>) const override {
    return TensorSpec{DType::kInt64, {}};
  }
  Result<void> run(const SampleInput& input, const SampleRandom&, Scratch&,
                   std::span<std::byte> out, RunNotes&) const override {
    const std::string_view text = as_text(input.encoded);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::int64_t value = value_of(text[i]);
      const bool is_taken_off =
          i + 1 < text.size() && value < value_of(text[i + 1]);
      sum += is_taken_off ? -value : value;
      if (value == 0 || sum > most_) {
        return Error(ErrorCode::kCorrupt,
                     fmt::format("{}: '{}' is no numeral up to {}", field_,
                                 text, most_));
      }
    }
    std::memcpy(out.data(), &sum, sizeof(sum));
    return {};
  }
  std::string remedy() const override { return {}; }

 private:
  const std::int64_t most_;
  const std::string field_;
};

ParseField make_roman(ParamReader& params) {
  const std::uint64_t most = params.count("most");
  return [most](const std::string& field) -> FieldProgram {
    return {std::make_shared<RomanProgram>(most, field), nullptr};
  };
}

constexpr std::string_view kUsual[] = {"rom"};
constexpr std::array kRomanParams = {
    ParamInfo{"most", ParamKind::kCount, "3999", "the largest number"}};

}  // namespace

constinit const ParseOpKind kParseRoman = {
    .info = {"parse_roman", "numerals, as Rome wrote them, to a number",
             kRomanParams},
    .usual_fields = kUsual,
    .reads_texts = true,
    .make = make_roman};

}  // namespace leat
