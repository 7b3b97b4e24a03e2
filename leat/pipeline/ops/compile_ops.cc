// Which op works on which field. An op that reads bytes opens a chain; every
// other op joins the chain of the image that its field is.

#include <fmt/format.h>

#include <algorithm>

#include "leat/pipeline/ops/function_program.h"
#include "leat/pipeline/ops/image_cut.h"
#include "leat/pipeline/ops/image_program.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/parse_program.h"
#include "leat/pipeline/ops/shape_program.h"
#include "leat/pipeline/program.h"

namespace leat {
namespace {

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

/// Fields that an op works on if it is not told which: images by the usual
/// names, the rest by WebDataset's extensions.
std::span<const std::string_view> usual_names(const Op& op) {
  static constexpr std::string_view kImages[] = {"jpg",  "jpeg",  "png",
                                                 "webp", "image", "data"};
  static constexpr std::string_view kInts[] = {
      "cls", "cls2", "class", "count", "index", "inx", "id"};
  static constexpr std::string_view kTexts[] = {"txt", "text", "transcript"};
  static constexpr std::string_view kJsons[] = {"json", "jsn"};
  static constexpr std::string_view kNpys[] = {"npy"};
  if (std::holds_alternative<DecodeImageOp>(op.params)) return kImages;
  if (std::holds_alternative<ParseIntOp>(op.params)) return kInts;
  if (std::holds_alternative<ParseTextOp>(op.params)) return kTexts;
  if (std::holds_alternative<ParseJsonOp>(op.params)) return kJsons;
  if (std::holds_alternative<LoadNpyOp>(op.params)) return kNpys;
  return {};
}

bool is_image(const Op& op) {
  return std::holds_alternative<DecodeImageOp>(op.params);
}

bool is_function(const Op& op) {
  return std::holds_alternative<FunctionOp>(op.params);
}

/// Functions read whatever there is, and texts are parsed wherever they stand.
bool can_read(const Op& op, FieldKind kind) {
  const bool parses = std::holds_alternative<ParseIntOp>(op.params) ||
                      std::holds_alternative<ParseFloatOp>(op.params) ||
                      std::holds_alternative<ParseTextOp>(op.params) ||
                      std::holds_alternative<ParseJsonOp>(op.params);
  return kind == FieldKind::kBytes || is_function(op) ||
         (parses && kind == FieldKind::kString);
}

struct Chain {
  std::size_t source = 0;
  std::string name;        // By now.
  std::string drawn_name;  // Behind the decoder.
  std::vector<Op> ops;
};

class ChainBuilder {
 public:
  explicit ChainBuilder(const std::vector<FieldSpec>& fields)
      : fields_(fields) {}

  Result<void> add(Op op) {
    if (is_function(op)) {
      if (!continues(op)) return open(std::move(op));
      Chain& chain = *chain_of(op);
      return append(chain, std::move(op));
    }
    return opens_chain(op) ? open(std::move(op)) : join(std::move(op));
  }

  Result<std::vector<OutputField>> take() {
    std::vector<OutputField> outputs;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      bool is_decoded = false;
      for (Chain& chain : chains_) {
        if (chain.source != i) continue;
        is_decoded = true;
        LEAT_TRY(OutputField output, compile(std::move(chain), i));
        outputs.push_back(std::move(output));
      }
      if (!is_decoded) {
        outputs.push_back({.name = fields_[i].name, .source = i});
      }
    }
    LEAT_TRY_VOID(check_names(outputs));
    return outputs;
  }

 private:
  Result<OutputField> compile(Chain chain, std::size_t source) const {
    OutputField output{.name = chain.name, .source = source};
    // Behind a function that decodes by itself: as images usually come.
    DecodeImageOp decode{.layout = PixelLayout::kHwc};
    if (is_image(chain.ops[0])) {
      decode = std::get<DecodeImageOp>(chain.ops[0].params);
    }
    LEAT_TRY(const std::optional<OwnShapes> shapes,
             take_own_shapes(chain.ops, decode.layout));
    const auto first = std::ranges::find_if(chain.ops, is_function);
    const std::vector<Op> functions(first, chain.ops.end());
    chain.ops.erase(first, chain.ops.end());
    CutChain cut;
    if (!chain.ops.empty() && is_image(chain.ops[0])) {
      LEAT_TRY(output.program,
               compile_image_program(chain.ops, chain.drawn_name));
      LEAT_TRY(cut,
               cut_image_program(chain.ops, chain.drawn_name, output.program));
    } else if (!chain.ops.empty()) {
      add_parse_program(chain.ops[0], fields_[source].name, output);
    }
    if (!functions.empty()) {
      LEAT_TRY(
          const FunctionPrograms made,
          compile_functions(output, fields_[source].kind, decode, functions,
                            chain.drawn_name, cut.rest, shapes));
      output.value_program = made.whole;
      output.program = nullptr;
      cut.rest = nullptr;
      cut.value_rest = made.rest;
    }
    if (cut.cut != nullptr) {
      output.cut_chain = std::make_shared<const CutChain>(std::move(cut));
    }
    if (shapes && output.program != nullptr) give_own_shapes(output, *shapes);
    return output;
  }

  Result<void> open(Op op) {
    LEAT_TRY(const std::size_t source,
             op.field.empty() ? only_field(op) : named_field(op));
    Chain chain;
    chain.source = source;
    chain.name = !op.to.empty() ? op.to
                 : is_image(op) ? "image"
                                : fields_[source].name;
    chain.drawn_name = chain.name;
    if (is_image(op) || is_function(op)) current_ = chain.name;
    last_ = chain.name;
    chain.ops.push_back(std::move(op));
    chains_.push_back(std::move(chain));
    return {};
  }

  /// Whether a function takes what ops before it made.
  bool continues(const Op& op) {
    return (!op.field.empty() || !last_.empty()) &&
           chain_of(op) != chains_.rend();
  }

  /// The youngest chain of the op's field, should a name be taken twice.
  std::vector<Chain>::reverse_iterator chain_of(const Op& op) {
    const std::string& before = is_function(op) ? last_ : current_;
    const std::string& name = op.field.empty() ? before : op.field;
    return std::find_if(chains_.rbegin(), chains_.rend(),
                        [&](const Chain& c) { return c.name == name; });
  }

  Result<void> append(Chain& chain, Op op) {
    if (!op.to.empty()) chain.name = op.to;
    current_ = chain.name;
    last_ = chain.name;
    chain.ops.push_back(std::move(op));
    return {};
  }

  Result<void> join(Op op) {
    if (op.field.empty() && current_.empty()) {
      return invalid(
          fmt::format("{} (op {}) needs an image: put decode_image before it",
                      op.name, op.index));
    }
    const std::string& name = op.field.empty() ? current_ : op.field;
    const auto chain = chain_of(op);
    if (chain == chains_.rend()) {
      return invalid(
          fmt::format("{} (op {}): '{}' is no decoded image; put "
                      "decode_image(field=\"...\","
                      " to=\"{}\") before it",
                      op.name, op.index, name, name));
    }
    if (!is_image(chain->ops[0]) && !is_function(chain->ops[0])) {
      return invalid(
          fmt::format("{} (op {}) works on images, and '{}' is what {} made",
                      op.name, op.index, name, chain->ops[0].name));
    }
    return append(*chain, std::move(op));
  }

  Result<std::size_t> named_field(const Op& op) const {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].name != op.field) continue;
      if (can_read(op, fields_[i].kind)) return i;
      return invalid(fmt::format(
          "{} (op {}): field '{}' is a number or a text of the catalogue, "
          "which the op does not read; {}",
          op.name, op.index, op.field, choices()));
    }
    return invalid(fmt::format("{} (op {}): there is no field '{}'; {}",
                               op.name, op.index, op.field, choices()));
  }

  /// The only field of bytes, or the only one that is named as the op's
  /// usually are.
  Result<std::size_t> only_field(const Op& op) const {
    const std::span<const std::string_view> usual = usual_names(op);
    const auto is_named_so = [&](const FieldSpec& field) {
      return std::ranges::find(usual, field.name) != usual.end();
    };
    std::vector<std::size_t> bytes;
    std::vector<std::size_t> named;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].kind != FieldKind::kBytes) continue;
      bytes.push_back(i);
      if (is_named_so(fields_[i])) named.push_back(i);
    }
    if (bytes.size() == 1) return bytes[0];
    if (named.size() == 1) return named[0];
    return invalid(fmt::format("{}: say which field with field=\"...\"; {}",
                               op.name, choices()));
  }

  std::string choices() const {
    std::string names;
    for (const FieldSpec& field : fields_) {
      if (field.kind != FieldKind::kBytes) continue;
      names += names.empty() ? "fields of bytes: " : ", ";
      names += field.name;
    }
    return names.empty() ? "the dataset has no field of bytes" : names;
  }

  static Result<void> check_names(const std::vector<OutputField>& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (outputs[i].name != outputs[j].name) continue;
        return invalid(fmt::format(
            "two fields would be named '{}'; give one op to=\"...\"",
            outputs[i].name));
      }
    }
    return {};
  }

  const std::vector<FieldSpec>& fields_;
  std::vector<Chain> chains_;
  std::string current_;  // The image of the op before.
  std::string last_;     // The field of the op before, whatever it is.
};

}  // namespace

Result<std::vector<OutputField>> compile_ops(
    const std::vector<OpSpec>& ops, const std::vector<FieldSpec>& fields) {
  ChainBuilder builder(fields);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    LEAT_TRY(Op op, make_op(ops[i], i));
    LEAT_TRY_VOID(builder.add(std::move(op)));
  }
  return builder.take();
}

}  // namespace leat
