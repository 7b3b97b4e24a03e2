// Each chain of ops as one program, or as a part of one where a function of the
// user's joins several.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "leat/base/errors.h"
#include "leat/pipeline/ops/chains.h"
#include "leat/pipeline/ops/follow_program.h"
#include "leat/pipeline/ops/function_program.h"
#include "leat/pipeline/ops/image_cut.h"
#include "leat/pipeline/ops/image_program.h"
#include "leat/pipeline/ops/joint_program.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/op_kind.h"
#include "leat/pipeline/ops/parse_op.h"
#include "leat/pipeline/ops/shape_program.h"
#include "leat/pipeline/program/program.h"

namespace leat {
namespace {

bool is_image(const Op& op) {
  return std::holds_alternative<DecodeImageOp>(op.params);
}

/// The image that leads the boxes and keypoints of a sample.
struct Followed {
  std::optional<Leader> leader;
  bool has_followers = false;

  CutPlace cut_of(const Chain& chain) const {
    return has_followers && leader && chain.source == leader->column
               ? CutPlace::kDecoder
               : CutPlace::kLast;
  }
};

/// The fields that lie in the leader, as a list for messages. Labels have no
/// place.
std::string annotations_of(const std::vector<Chain>& chains,
                           const Chain* leader) {
  std::vector<std::string> names;
  for (const Chain& chain : chains) {
    const bool is_placed =
        chain.kind == ChainKind::kFollower && chain.part == BoxPart::kBoxes;
    if (&chain == leader || (chain.kind != ChainKind::kMask && !is_placed)) {
      continue;
    }
    names.push_back(fmt::format("'{}'", chain.name));
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

/// Decides what becomes of pictures that are not upright. Beside what lies in
/// them, only the user can say whether to turn them; masks go by their image.
void settle_orientations(std::vector<Chain>& chains) {
  const Chain* const leader = leader_of(chains);
  if (leader == nullptr) return;
  const std::string annotations = annotations_of(chains, leader);
  if (annotations.empty()) return;
  const auto led_by = std::get<DecodeImageOp>(leader->ops[0].params);
  for (Chain& chain : chains) {
    if (!is_image(chain.ops[0])) continue;
    auto& decode = std::get<DecodeImageOp>(chain.ops[0].params);
    if (decode.is_orientation_said) continue;
    if (decode.is_mask() && led_by.is_orientation_said) {
      decode.exif_orientation = led_by.exif_orientation;
    } else {
      decode.exif_orientation = ExifOrientation::kRefuse;
      decode.annotated_by = annotations;
    }
  }
}

Result<Followed> followed_in(const std::vector<Chain>& chains) {
  Followed followed;
  const Chain* const leader = leader_of(chains);
  if (leader != nullptr) {
    followed.leader =
        Leader{leader->source, std::get<DecodeImageOp>(leader->ops[0].params)};
  }
  for (const Chain& chain : chains) {
    if (chain.kind != ChainKind::kFollower) continue;
    followed.has_followers = true;
    const Op& op = chain.ops[0];
    const auto* boxes = std::get_if<ParseBoxesOp>(&op.params);
    const bool is_normalized =
        boxes != nullptr ? boxes->is_normalized
                         : std::get<ParseKeypointsOp>(op.params).is_normalized;
    if (leader == nullptr && is_normalized) {
      return invalid(
          "{} (op {}): normalized=True needs the size of a picture: decode an "
          "image",
          op.name, op.index);
    }
  }
  return followed;
}

/// Behind a function that decodes by itself: as images usually come.
DecodeImageOp decode_of(const Chain& chain) {
  if (is_image(chain.ops[0])) {
    return std::get<DecodeImageOp>(chain.ops[0].params);
  }
  return DecodeImageOp{.layout = PixelLayout::kHwc};
}

/// Takes the first function off a chain, and all behind it.
std::vector<Op> take_functions(Chain& chain) {
  const auto first = std::ranges::find_if(chain.ops, is_function);
  std::vector<Op> functions(first, chain.ops.end());
  chain.ops.erase(first, chain.ops.end());
  return functions;
}

/// A chain without functions; without ops, the field as it is.
Result<OutputField> compile_plain(const Chain& chain,
                                  const std::vector<FieldSpec>& fields,
                                  const Followed& followed) {
  OutputField output{.name = chain.name, .source = chain.source};
  if (chain.ops.empty()) return output;
  if (is_image(chain.ops[0])) {
    LEAT_TRY(output.program,
             compile_image_program(chain.ops, chain.drawn_name));
  } else if (chain.kind == ChainKind::kFollower) {
    output.value_program = compile_follow_program(chain.ops, chain.drawn_name,
                                                  followed.leader, chain.part);
    if (followed.leader) output.also_read = {followed.leader->column};
  } else {
    const auto& op = std::get<ParseOpParams>(chain.ops[0].params);
    FieldProgram made = op.parse(fields[chain.source].name);
    output.program = std::move(made.program);
    output.value_program = std::move(made.value_program);
  }
  return output;
}

Result<OutputField> compile_one(Chain chain,
                                const std::vector<FieldSpec>& fields,
                                const Followed& followed) {
  const DecodeImageOp decode = decode_of(chain);
  LEAT_TRY(const std::optional<OwnShapes> shapes,
           take_own_shapes(chain.ops, decode.layout));
  const std::vector<Op> functions = take_functions(chain);
  LEAT_TRY(OutputField output, compile_plain(chain, fields, followed));
  CutChain cut;
  if (output.program != nullptr && is_image(chain.ops[0])) {
    LEAT_TRY(cut, cut_image_program(chain.ops, chain.drawn_name, output.program,
                                    followed.cut_of(chain)));
  }
  if (!functions.empty()) {
    LEAT_TRY(const FunctionPrograms made,
             compile_functions(output, fields[chain.source].kind, decode,
                               functions, chain.drawn_name, cut.rest, shapes));
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

/// Chains that a function joins: each reads the fields of all, as they are
/// stored.
Result<std::vector<OutputField>> compile_joined(
    const std::vector<Chain>& chains, const std::vector<FieldSpec>& fields,
    const Followed& followed) {
  std::vector<OutputField> outputs;
  std::vector<JointChain> joint;
  std::vector<std::size_t> read;
  for (Chain chain : chains) {
    JointChain one;
    one.decode = decode_of(chain);
    LEAT_TRY(one.shapes, take_own_shapes(chain.ops, one.decode.layout));
    one.ops = take_functions(chain);
    one.kind = fields[chain.source].kind;
    one.field = chain.drawn_name;
    LEAT_TRY(one.before, compile_plain(chain, fields, followed));
    outputs.push_back({.name = chain.name, .source = chain.source});
    read.push_back(chain.source);
    read.insert(read.end(), one.before.also_read.begin(),
                one.before.also_read.end());
    joint.push_back(std::move(one));
  }
  LEAT_TRY(const auto programs, compile_joint(std::move(joint)));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].value_program = programs[i];
    outputs[i].also_read = read;
  }
  return outputs;
}

bool share_function(const Chain& a, const Chain& b) {
  const auto is_joint = [](const Op& op) {
    return is_function(op) && !std::get<FunctionOp>(op.params).fields.empty();
  };
  return std::ranges::any_of(a.ops, [&](const Op& op) {
    return is_joint(op) &&
           std::ranges::find(b.ops, op.index, &Op::index) != b.ops.end();
  });
}

/// Those that functions join, directly or through others, beside `first`.
std::vector<std::size_t> joined_with(const std::vector<Chain>& chains,
                                     std::size_t first) {
  std::vector<std::size_t> group = {first};
  for (std::size_t next = 0; next < group.size(); ++next) {
    for (std::size_t i = 0; i < chains.size(); ++i) {
      if (std::ranges::find(group, i) != group.end()) continue;
      if (share_function(chains[group[next]], chains[i])) group.push_back(i);
    }
  }
  return group;
}

/// Compiles each chain.
Result<std::vector<OutputField>> compile_all(
    const std::vector<Chain>& chains, const std::vector<FieldSpec>& fields) {
  LEAT_TRY(const Followed followed, followed_in(chains));
  std::vector<OutputField> outputs(chains.size());
  std::vector<bool> is_done(chains.size());
  for (std::size_t i = 0; i < chains.size(); ++i) {
    if (is_done[i]) continue;
    const std::vector<std::size_t> group = joined_with(chains, i);
    if (group.size() == 1) {
      LEAT_TRY(outputs[i], compile_one(chains[i], fields, followed));
      continue;
    }
    std::vector<Chain> joined;
    for (const std::size_t place : group) joined.push_back(chains[place]);
    LEAT_TRY(auto made, compile_joined(joined, fields, followed));
    for (std::size_t k = 0; k < group.size(); ++k) {
      outputs[group[k]] = std::move(made[k]);
      is_done[group[k]] = true;
    }
  }
  return outputs;
}

Result<void> check_names(const std::vector<OutputField>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (outputs[i].name != outputs[j].name) continue;
      return invalid("two fields would be named '{}'; give one op to=\"...\"",
                     outputs[i].name);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<OutputField>> compile_ops(
    const std::vector<OpSpec>& specs, const std::vector<FieldSpec>& fields) {
  std::vector<Op> ops;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    LEAT_TRY(Op op, make_op(specs[i], i));
    ops.push_back(std::move(op));
  }
  LEAT_TRY(std::vector<Chain> chains, chain_ops(std::move(ops), fields));
  settle_orientations(chains);
  LEAT_TRY(std::vector<OutputField> made, compile_all(chains, fields));
  std::vector<OutputField> outputs;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    bool is_decoded = false;
    for (OutputField& output : made) {
      if (output.source != i || output.name.empty()) continue;
      is_decoded = true;
      outputs.push_back(std::exchange(output, {}));
    }
    if (!is_decoded) outputs.push_back({.name = fields[i].name, .source = i});
  }
  LEAT_TRY_VOID(check_names(outputs));
  return outputs;
}

}  // namespace leat
