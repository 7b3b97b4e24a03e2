// The reads of a loader and their sizes, for code that plans ahead.
#pragma once
#include <cstdint>
#include <memory>

#include "leat/dataset/catalogue.h"
#include "leat/plan/sweep.h"

namespace leat {

/// `shuffle=True`: shards are mixed piece by piece.
constexpr Shuffle usual_shuffle(Layout layout) {
  return layout == Layout::kShards ? Shuffle::kBlock : Shuffle::kFull;
}

/// How long the pieces of shards are: as ever, but objects that are derived
/// from others (derived_key.h) are whole pieces, if all are.
std::uint64_t piece_bytes_of(const Catalogue& catalogue);

/// One rank reads whole pieces of shards; one of several would read W times
/// what it delivers, so it reads sample by sample.
constexpr bool reads_pieces(Layout layout, std::uint32_t world_size) {
  return layout == Layout::kShards && world_size == 1;
}

/// The size of a range that is fetched by itself, and kept as it is: in parts
/// if it is long, a record of a tier each. Nothing for a range that is missing
/// or empty.
ReadSize read_size_of(ByteRange range);

/// Sets the data of `job`, whose ranks and seed are set, and the way it is
/// read: as a loader with every option at its default reads all fields of
/// `catalogue`.
void read_as_usual(std::shared_ptr<const Catalogue> catalogue,
                   SweepOptions& job);

}  // namespace leat
