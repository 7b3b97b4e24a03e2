// Chains of a single op that reads no image: numbers, texts, JSON, arrays.
#pragma once
#include <string>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/program/program.h"

namespace leat {

/// Compiles `op`, which opens a chain and is not a DecodeImageOp, into the
/// suitable program of `output`. Messages of the program begin with `field`.
void add_parse_program(const Op& op, const std::string& field,
                       OutputField& output);

}  // namespace leat
