// The index of a tar shard's members as NVIDIA DALI's wds2idx writes it.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/codec/member_scanner.h"

namespace leat {

/// Reads an index of version 1.2 of a shard of `shard_bytes`: the first line is
/// "v1.2 N", each of the N others a sample, its fields as "EXTENSION OFFSET
/// SIZE NAME", all between single blanks.
///
/// Trusts nothing that the text itself can prove wrong: each member lies within
/// the shard, on a block, after the one before it, and its name ends with its
/// extension.
///
/// Errors:
///   kInvalidArgument  another version: 1.1 has no names
///   kCorrupt          anything else; names the line
Result<std::vector<Member>> parse_member_index(std::string_view text,
                                               std::uint64_t shard_bytes);

}  // namespace leat
