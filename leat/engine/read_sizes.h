// A loader's reads and their sizes, for code that plans ahead.
#pragma once
#include <cstdint>
#include <memory>

#include "leat/dataset/catalogue.h"
#include "leat/plan/sweep.h"

namespace leat {

/// The meaning of `shuffle=True`: shards are mixed piece by piece.
constexpr Shuffle usual_shuffle(Layout layout) {
  return layout == Layout::kShards ? Shuffle::kBlock : Shuffle::kFull;
}

/// The length of the pieces of shards: the usual one, but if all objects are
/// derived from others (derived_key.h), each is one whole piece.
std::uint64_t piece_bytes_of(const Catalogue& catalogue);

/// A single rank reads whole pieces of shards. Each of several would read W
/// times what it delivers, so they read sample by sample.
constexpr bool reads_pieces(Layout layout, std::uint32_t world_size) {
  return layout == Layout::kShards && world_size == 1;
}

/// The size of a range that is fetched alone and kept as stored: a long one
/// in parts, each a record of a tier. Zero for a range that is missing or
/// empty.
ReadSize read_size_of(ByteRange range);

/// Sets the data of `job`, whose ranks and seed are set already, and its
/// reads: those of a loader that reads all fields of `catalogue` with default
/// options.
void read_as_usual(std::shared_ptr<const Catalogue> catalogue,
                   SweepOptions& job);

}  // namespace leat
