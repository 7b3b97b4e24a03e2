// The fields that a batch holds, and where each comes from.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/program/value.h"

namespace leat {

enum class FieldSource : std::uint8_t {
  kProgram,   ///< A column, through ops: a dense array.
  kValue,     ///< A column, through ops: their output.
  kRaw,       ///< The store's bytes, unchanged: ragged.
  kInt64,     ///< A number from the catalogue.
  kFloat64,   ///< A number from the catalogue.
  kString,    ///< A text from the catalogue.
  kIndex,     ///< The sample's id, int64.
  kKey,       ///< The sample's key.
  kValid,     ///< False for the padding of a last step; bool.
  kSize,      ///< Height and width of each picture of a field; int64.
  kOnlyRead,  ///< A column that others read; last, not delivered.
};

struct DeliveredField {
  std::string name;
  FieldSource source = FieldSource::kRaw;
  std::size_t column = 0;  ///< A field of the catalogue, if there is one.
  /// The kind of the column.
  FieldKind kind = FieldKind::kBytes;
  std::shared_ptr<const Program> program;             ///< For kProgram.
  std::shared_ptr<const ValueProgram> value_program;  ///< For kValue.
  /// For both, if they can be cut; otherwise null.
  std::shared_ptr<const CutChain> cut_chain = nullptr;
  Joining joining = Joining::kStack;  ///< For kValue.
  std::size_t size_of = 0;  ///< For kSize: the field, among those chosen.
  /// Further columns that ops read.
  std::vector<std::size_t> also_read = {};

  /// Whether ops make it.
  bool has_ops() const {
    return source == FieldSource::kProgram || source == FieldSource::kValue;
  }
  /// Whether its bytes alone determine how much memory it needs.
  bool guesses() const {
    return source == FieldSource::kValue && value_program->guesses();
  }
  /// Whether its bytes are in the store rather than the catalogue.
  bool is_fetched() const {
    return source == FieldSource::kRaw ||
           ((has_ops() || source == FieldSource::kOnlyRead) &&
            kind == FieldKind::kBytes);
  }
};

/// The user's choices besides the ops.
struct FieldChoice {
  std::vector<std::string> names;  ///< In this order; empty for all.
  bool with_ids = false;           ///< Adds `index`, `key` and `valid`.
  bool has_valid = false;          ///< The field `valid` may be named.
  /// Each batch is one sample, so it may have any shape.
  bool has_batches_of_one = false;
  /// A collate function gets each sample with its own shape.
  bool has_collate = false;
};

/// Compiles the ops and picks the fields; after them come the columns that are
/// only read. If the pictures of a field `image` have different sizes,
/// `image_size` may be named too.
///
/// Errors:
///   kInvalidArgument  a name that no field has (the message lists those there
///                     are), or one twice; `valid` if it may be named and the
///                     samples have one, too; whatever compile_ops refuses
Result<std::vector<DeliveredField>> choose_fields(
    const std::vector<OpSpec>& ops, const std::vector<FieldSpec>& fields,
    const FieldChoice& choice);

}  // namespace leat
