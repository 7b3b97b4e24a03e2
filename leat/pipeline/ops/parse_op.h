// The seam for ops that read a field of bytes and decode no picture: numbers,
// texts, documents, arrays. Each is defined in a source of its own in parsers/,
// and has a row in the list there.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/op_table.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/program/value.h"

namespace leat {

class ParamReader;

/// The program of a field. One of the two is null.
struct FieldProgram {
  std::shared_ptr<const Program> program;  ///< Writes straight into the slot.
  std::shared_ptr<const ValueProgram> value_program;
};

/// A row of the list of such ops.
struct ParseOpKind {
  OpInfo info;
  /// The field that it reads if it is not told which: WebDataset's extensions.
  std::span<const std::string_view> usual_fields = {};
  /// It also reads texts that the catalogue holds.
  bool reads_texts = false;
  /// Reads and checks the parameters; errors go to `params`. The result makes
  /// the program of a field, whose messages begin with the field's name.
  ParseField (*make)(ParamReader& params) = nullptr;
};

/// All of them, in the order in which help lists them.
std::span<const ParseOpKind* const> parse_op_kinds();

}  // namespace leat
