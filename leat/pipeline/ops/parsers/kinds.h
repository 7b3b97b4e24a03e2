// The ops of this folder, each defined in a source here.
#pragma once
#include "leat/pipeline/ops/parse_op.h"

namespace leat {

extern const ParseOpKind kParseInt;
extern const ParseOpKind kParseFloat;
extern const ParseOpKind kParseText;
extern const ParseOpKind kParseJson;
extern const ParseOpKind kLoadNpy;
extern const ParseOpKind kParseFeature;
extern const ParseOpKind kLoadMdsArray;
extern const ParseOpKind kLoadLitdataArray;

}  // namespace leat
