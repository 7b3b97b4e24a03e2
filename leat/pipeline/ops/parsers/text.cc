// A text in UTF-8.

#include <string>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/text/text.h"
#include "leat/pipeline/ops/parsers/kinds.h"

namespace leat {
namespace {

/// A text that is checked to be UTF-8 and else left alone.
class TextProgram final : public ValueProgram {
 public:
  explicit TextProgram(std::string field) : field_(std::move(field)) {}

  Joining joining() const override { return Joining::kStack; }
  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    return encoded_bytes;
  }
  Result<Value> run(const SampleInput& input, const SampleRandom&, Scratch&,
                    RunNotes&) const override {
    const std::span<const std::byte> encoded = input.encoded;
    const std::string_view text = as_text(encoded);
    if (const auto at = first_invalid_utf8(text)) {
      return corrupt(
          "{}: no UTF-8 from byte {} on, {}; leave it without an op to get its "
          "bytes",
          field_, *at, quoted(encoded.subspan(*at)));
    }
    return Value(std::string(text));
  }
  std::string remedy() const override { return {}; }

 private:
  const std::string field_;
};

ParseField make_text(ParamReader&) {
  return [](const std::string& field) -> FieldProgram {
    return {nullptr, std::make_shared<TextProgram>(field)};
  };
}

constexpr std::string_view kUsualTexts[] = {"txt", "text", "transcript"};

}  // namespace

constinit const ParseOpKind kParseText = {
    .info = {"parse_text", "UTF-8 to a text", {}, "field"},
    .usual_fields = kUsualTexts,
    .reads_texts = true,
    .make = make_text};

}  // namespace leat
