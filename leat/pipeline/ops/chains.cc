// An op that reads bytes begins a chain. Every other op joins the chain of the
// field that it names. An op that names none joins those of all fields of the
// sample that it is for: an op that moves pixels moves them in all alike.

#include "leat/pipeline/ops/chains.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/pipeline/ops/field_choice.h"
#include "leat/pipeline/ops/filter_place.h"
#include "leat/pipeline/ops/op_kind.h"
#include "leat/pipeline/ops/sibling_draws.h"

namespace leat {
namespace {

ChainKind kind_behind(const Op& first) {
  if (is_function(first)) return ChainKind::kFunction;
  if (const auto* decode = std::get_if<DecodeImageOp>(&first.params)) {
    return decode->is_mask() ? ChainKind::kMask : ChainKind::kImage;
  }
  if (reads_followers(first)) return ChainKind::kFollower;
  return ChainKind::kValue;
}

/// The name of what an op makes of bytes, if it is not told one.
std::string_view usual_result(const Op& first) {
  const ChainKind kind = kind_behind(first);
  if (kind == ChainKind::kImage) return "image";
  if (kind == ChainKind::kMask) return "mask";
  if (kind != ChainKind::kFollower) return "";
  return std::holds_alternative<ParseBoxesOp>(first.params) ? "boxes"
                                                            : "keypoints";
}

/// Whether an op that names no field is for such a one.
bool is_for(const Op& op, const Chain& chain) {
  if (kind_of(op) == OpKind::kBatch) {
    return chain.kind == ChainKind::kImage || chain.kind == ChainKind::kMask;
  }
  return moves_pixels(op) ? chain.is_spatial()
                          : chain.kind == ChainKind::kImage;
}

class ChainBuilder {
 public:
  explicit ChainBuilder(const std::vector<FieldSpec>& fields)
      : fields_(fields) {}

  Result<void> add(Op op) {
    if (is_function(op)) return add_function(std::move(op));
    return opens_chain(op) ? open(std::move(op)) : join(std::move(op));
  }

  Result<std::vector<Chain>> take() {
    for (const Joined& joined : joined_) {
      LEAT_TRY_VOID(check_followers(joined));
      LEAT_TRY_VOID(check_draws(joined));
    }
    LEAT_TRY_VOID(check_sibling_draws(chains_));
    LEAT_TRY_VOID(check_filters(chains_));
    return std::move(chains_);
  }

 private:
  using Places = std::vector<std::size_t>;  // Indices of chains.
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// An op and the chains that it is in.
  struct Joined {
    Op op;
    Places chains;
  };

  Result<void> open(Op op) {
    LEAT_TRY(const std::size_t source, field_read_by(op, fields_));
    Chain chain;
    chain.kind = kind_behind(op);
    chain.source = source;
    chain.name = !op.to.empty()              ? op.to
                 : !usual_result(op).empty() ? std::string(usual_result(op))
                                             : fields_[source].name;
    chain.drawn_name = chain.name;
    const auto* boxes = std::get_if<ParseBoxesOp>(&op.params);
    chain.ops.push_back(op);
    last_ = chains_.size();
    if (chain.kind == ChainKind::kImage || chain.kind == ChainKind::kMask ||
        chain.kind == ChainKind::kFunction) {
      current_ = last_;
    }
    chains_.push_back(chain);
    if (boxes != nullptr && boxes->labels) {
      chain.name = boxes->labels_to;
      chain.drawn_name = chain.name;
      chain.part = BoxPart::kLabels;
      chains_.push_back(std::move(chain));
    }
    return {};
  }

  /// The youngest chain of a name, should that be taken twice.
  std::size_t chain_named(const std::string& name) const {
    for (std::size_t i = chains_.size(); i-- > 0;) {
      if (chains_[i].name == name) return i;
    }
    return kNone;
  }

  /// A function takes what ops before it made, else the bytes of a field.
  Result<void> add_function(Op op) {
    const auto& fields = std::get<FunctionOp>(op.params).fields;
    if (!fields.empty()) return add_joint(op, fields);
    const std::size_t place = op.field.empty() ? last_ : chain_named(op.field);
    if (place == kNone) return open(std::move(op));
    append(place, std::move(op));
    return {};
  }

  /// In the chain of each of its fields; those that have none get one.
  Result<void> add_joint(const Op& op, const std::vector<std::string>& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (std::find(fields.begin(), fields.begin() + i, fields[i]) !=
          fields.begin() + i) {
        return invalid("python (op {}): fields= names '{}' twice", op.index,
                       fields[i]);
      }
      Op part = op;
      part.field = fields[i];
      const std::size_t place = chain_named(fields[i]);
      if (place != kNone) {
        append(place, std::move(part));
      } else {
        LEAT_TRY_VOID(open(std::move(part)));
      }
    }
    return {};
  }

  void append(std::size_t place, Op op) {
    Chain& chain = chains_[place];
    if (!op.to.empty()) chain.name = op.to;
    last_ = place;
    current_ = place;
    if (chain.kind == ChainKind::kMask) {
      const auto& decode = std::get<DecodeImageOp>(chain.ops[0].params);
      op = for_labels(std::move(op), decode.ignore_index);
    }
    chain.ops.push_back(std::move(op));
  }

  Result<void> join(Op op) {
    LEAT_TRY(Places places, op.field.empty() ? all_for(op) : the_one_named(op));
    if (!op.to.empty() && places.size() > 1) {
      return invalid(
          "{} (op {}) works on {}: to=\"{}\" would name them alike; say which "
          "with field=\"...\"",
          op.name, op.index, names_of(places), op.to);
    }
    LEAT_TRY_VOID(check_history(op, places));
    LEAT_TRY_VOID(check_rows(op, places));
    LEAT_TRY_VOID(check_can_follow(op, places));
    joined_.push_back({op, places});
    if (places.size() > 1 && !op.is_independent) share(op, places);
    for (const std::size_t place : places)
      append(place, as_met(op, places, place));
    return {};
  }

  /// Rows have to know the size of their picture at every change.
  Op as_met(Op op, const Places& places, std::size_t place) const {
    const Chain* const leader = leader_of(chains_);
    if (!moves_pixels(op) || op.is_independent || leader == nullptr ||
        std::ranges::none_of(places, [this](std::size_t i) {
          return chains_[i].kind == ChainKind::kFollower;
        })) {
      return op;
    }
    if (&chains_[place] == leader ||
        chains_[place].kind == ChainKind::kFollower) {
      op.meets_siblings = true;
    }
    return op;
  }

  /// One draw for all of them: as the first image has it.
  void share(Op& op, const Places& places) const {
    const auto is_image = [this](std::size_t place) {
      return chains_[place].kind == ChainKind::kImage;
    };
    const auto image = std::ranges::find_if(places, is_image);
    const std::size_t leader = image == places.end() ? places[0] : *image;
    op.drawn_for = xxh3_64(as_bytes(chains_[leader].drawn_name));
    // Two photographs of a sample may be cut out of their middles, each.
    op.meets_siblings =
        needs_equal_sizes(op) && (kind_of(op) == OpKind::kRandomGeometry ||
                                  !std::ranges::all_of(places, is_image));
  }

  Result<Places> the_one_named(const Op& op) const {
    const std::size_t place = chain_named(op.field);
    if (place == kNone) {
      return invalid(
          "{} (op {}): '{}' is no decoded image; put "
          "decode_image(field=\"...\", to=\"{}\") before it",
          op.name, op.index, op.field, op.field);
    }
    const Chain& chain = chains_[place];
    if (chain.kind != ChainKind::kFunction && !is_for(op, chain)) {
      return invalid("{} (op {}) works on images, and '{}' is what {} made",
                     op.name, op.index, op.field, chain.ops[0].name);
    }
    return Places{place};
  }

  /// The result of a function on bytes may be no image, unless the op stands
  /// right behind it.
  Result<Places> all_for(const Op& op) const {
    Places places;
    for (std::size_t i = 0; i < chains_.size(); ++i) {
      const bool is_right_before =
          i == current_ && chains_[i].kind == ChainKind::kFunction;
      if (is_for(op, chains_[i]) || is_right_before) places.push_back(i);
    }
    if (std::ranges::any_of(places, [this](std::size_t place) {
          return chains_[place].kind != ChainKind::kFollower;
        })) {
      return places;
    }
    return invalid("{} (op {}) needs an image: put decode_image before it",
                   op.name, op.index);
  }

  /// Rows move as long as they are known to be what was read.
  Result<void> check_rows(const Op& op, const Places& places) const {
    for (const std::size_t place : places) {
      const Chain& chain = chains_[place];
      if (chain.kind != ChainKind::kFollower ||
          std::ranges::none_of(chain.ops, is_function)) {
        continue;
      }
      return invalid(
          "{} (op {}) would move '{}', of which a function made what it liked: "
          "put the function behind it",
          op.name, op.index, chain.name);
    }
    return {};
  }

  Result<void> check_can_follow(const Op& op, const Places& places) const {
    for (const std::size_t place : places) {
      const ChainKind kind = chains_[place].kind;
      if (kind == ChainKind::kFollower && loses_rows(op)) {
        return invalid(
            "{} (op {}) moves pixels in a way of its own, and '{}' cannot "
            "follow them: leave out one of the two",
            op.name, op.index, chains_[place].name);
      }
      if (!is_for_images_alone(op)) continue;
      if (kind != ChainKind::kMask && kind != ChainKind::kFollower) continue;
      return invalid(
          "{} (op {}) makes several pictures of one, and '{}' cannot follow "
          "them: leave out one of the two",
          op.name, op.index, chains_[place].name);
    }
    return {};
  }

  /// Fields that an op without a name works on have all been through the same
  /// such ops: otherwise a user who writes a chain for each would have one
  /// changed twice.
  Result<void> check_history(const Op& op, const Places& places) const {
    if (!op.field.empty()) return {};
    for (const Joined& before : joined_) {
      if (!before.op.field.empty() || !overlap(before.chains, places)) continue;
      for (const std::size_t place : places) {
        const Chain& chain = chains_[place];
        if (chain.ops[0].index < before.op.index || !is_for(before.op, chain)) {
          continue;
        }
        return invalid(
            "{} (op {}) without field= works on {}, but {} (op {}) came before "
            "'{}' was decoded and worked on {} alone: decode all fields first "
            "and put each op once behind them, or name the field of each with "
            "field=\"...\"",
            op.name, op.index, names_of(places), before.op.name,
            before.op.index, chain.name, names_of(before.chains));
      }
    }
    return {};
  }

  /// Rows lie in their picture: an op that moves the one moves the other.
  Result<void> check_followers(const Joined& joined) const {
    const Chain* const leader = leader_of(chains_);
    if (!moves_pixels(joined.op)) return {};
    const auto moves = [&](std::size_t place) {
      return std::ranges::find(joined.chains, place) != joined.chains.end();
    };
    const bool moves_leader =
        leader != nullptr &&
        moves(static_cast<std::size_t>(leader - chains_.data()));
    for (std::size_t i = 0; i < chains_.size(); ++i) {
      if (chains_[i].kind != ChainKind::kFollower) continue;
      if (moves(i) == moves_leader &&
          (!moves(i) || !joined.op.is_independent)) {
        continue;
      }
      if (leader == nullptr) {
        return invalid(
            "{} (op {}) would move '{}', whose picture is none that "
            "decode_image or decode_mask made",
            joined.op.name, joined.op.index, chains_[i].name);
      }
      return invalid(
          "{} (op {}) has to move '{}' and '{}' alike, which lies in it: put "
          "{} before it, and leave out field= and independent=",
          joined.op.name, joined.op.index, leader->name, chains_[i].name,
          chains_[i].ops[0].name);
    }
    return {};
  }

  /// A random op moves everything that can be moved, or has to be
  /// `independent`.
  Result<void> check_draws(const Joined& joined) const {
    const Op& op = joined.op;
    if (kind_of(op) != OpKind::kRandomGeometry || op.is_independent) return {};
    for (std::size_t i = 0; i < chains_.size(); ++i) {
      if (!chains_[i].is_spatial() || !moves_spatial(joined.chains) ||
          std::ranges::find(joined.chains, i) != joined.chains.end()) {
        continue;
      }
      const Joined* other = other_draw(i);
      const std::string apart =
          other == nullptr
              ? fmt::format("is not moved with it")
              : fmt::format("is moved apart from it, by {} (op {})",
                            other->op.name, other->op.index);
      return invalid(
          "{} (op {}) draws for {}, and '{}' of the same sample {}: decode all "
          "fields first and put {} once behind them, without field=; or say "
          "independent=True if they do not belong together",
          op.name, op.index, names_of(joined.chains), chains_[i].name, apart,
          op.name);
    }
    return {};
  }

  const Joined* other_draw(std::size_t place) const {
    for (const Joined& joined : joined_) {
      if (kind_of(joined.op) == OpKind::kRandomGeometry &&
          std::ranges::find(joined.chains, place) != joined.chains.end()) {
        return &joined;
      }
    }
    return nullptr;
  }

  bool moves_spatial(const Places& places) const {
    return std::ranges::any_of(places, [this](std::size_t place) {
      return chains_[place].is_spatial();
    });
  }

  static bool overlap(const Places& a, const Places& b) {
    return std::ranges::find_first_of(a, b) != a.end();
  }

  std::string names_of(const Places& places) const {
    std::vector<std::string> names;
    for (const std::size_t place : places) {
      names.push_back(fmt::format("'{}'", chains_[place].name));
    }
    return fmt::format("{}", fmt::join(names, " and "));
  }

  const std::vector<FieldSpec>& fields_;
  std::vector<Chain> chains_;
  std::vector<Joined> joined_;   // But for functions.
  std::size_t last_ = kNone;     // The chain of the op before,
  std::size_t current_ = kNone;  // or of the last one that may be an image.
};

}  // namespace

const Chain* leader_of(const std::vector<Chain>& chains) {
  for (const ChainKind kind : {ChainKind::kImage, ChainKind::kMask}) {
    const auto found = std::ranges::find(chains, kind, &Chain::kind);
    if (found != chains.end()) return &*found;
  }
  return nullptr;
}

Result<std::vector<Chain>> chain_ops(std::vector<Op> ops,
                                     const std::vector<FieldSpec>& fields) {
  ChainBuilder builder(fields);
  for (Op& op : ops) LEAT_TRY_VOID(builder.add(std::move(op)));
  return builder.take();
}

}  // namespace leat
