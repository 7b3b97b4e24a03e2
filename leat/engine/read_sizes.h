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

/// The number of pieces that a shuffle mixes unless a user says it. A block
/// shuffle mixes 64, or as many as take half a GiB if pieces are longer than
/// usual, but at least four. A stream mixes 16, since the first batch waits for
/// as many. Depends on the catalogue alone, which may be null for a stream: the
/// order of a job must not depend on the machine.
std::uint32_t usual_window(Shuffle shuffle, const Catalogue* catalogue);

/// The requests in flight that a node begins with, which the tuner then
/// changes: `most`, or as many as take 128 MiB if reads are long, but at
/// least 16. More would share the link among reads that are needed late, and
/// training would wait for those that are needed first. `has_pieces` tells
/// whether shards are read in pieces; the lengths of samples within shards are
/// not looked at.
std::size_t usual_in_flight(const Catalogue* catalogue, bool has_pieces,
                            std::size_t most);

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
