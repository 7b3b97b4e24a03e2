// Which fields a batch holds, and where each comes from.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/pipeline/program.h"

namespace leat {

enum class FieldSource : std::uint8_t {
  kProgram,  ///< A column, through ops: a dense array.
  kValue,    ///< A column, through ops: what these make of it.
  kRaw,      ///< Bytes of the store as they are: ragged.
  kInt64,    ///< A number of the catalogue.
  kFloat64,  ///< A number of the catalogue.
  kString,   ///< A text of the catalogue.
  kIndex,    ///< The sample's id, int64.
  kKey,      ///< The sample's key.
  kValid,    ///< False for the padding of a last step; uint8.
};

struct DeliveredField {
  std::string name;
  FieldSource source = FieldSource::kRaw;
  std::size_t column = 0;  ///< A field of the catalogue, where there is one.
  FieldKind kind = FieldKind::kBytes;                 ///< Of the column.
  std::shared_ptr<const Program> program;             ///< Of kProgram.
  std::shared_ptr<const ValueProgram> value_program;  ///< Of kValue.
  /// Of both, where they can be cut; else null.
  std::shared_ptr<const CutChain> cut_chain = nullptr;

  /// Whether ops make it.
  bool has_ops() const {
    return source == FieldSource::kProgram || source == FieldSource::kValue;
  }
  /// Whether its bytes lie in the store, and not in the catalogue.
  bool is_fetched() const {
    return source == FieldSource::kRaw ||
           (has_ops() && kind == FieldKind::kBytes);
  }
};

/// What a user asks for besides the ops.
struct FieldChoice {
  std::vector<std::string> names;  ///< In this order; empty for all.
  bool with_ids = false;           ///< Adds `index`, `key` and `valid`.
  bool has_valid = false;          ///< There is `valid`, for who names it.
};

/// Compiles the ops and picks the fields.
///
/// Errors:
///   kInvalidArgument  a name that no field has (the message lists those there
///                     are), or one twice; whatever compile_ops refuses
Result<std::vector<DeliveredField>> choose_fields(
    const std::vector<OpSpec>& ops, const std::vector<FieldSpec>& fields,
    const FieldChoice& choice);

}  // namespace leat
