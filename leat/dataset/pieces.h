// The pieces that shards are cut into, each of which is read at once.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "leat/base/ids.h"
#include "leat/dataset/catalogue.h"

namespace leat {

/// The length of pieces, about: a catalogue file says how its shards are cut
/// into these.
inline constexpr std::uint64_t kUsualPieceBytes = 8 << 20;

/// The place of a sample's bytes, all its byte fields together. A sample
/// without bytes (`object` is ByteRange::kMissing) goes with the one before it.
struct SampleSpan {
  ObjectIndex object{ByteRange::kMissing};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool has_bytes() const { return object.value != ByteRange::kMissing; }
  /// Adds the bytes of a field. Those in another object are left out.
  void add(const ByteRange& range);
};

using SpanOf = std::function<SampleSpan(std::uint64_t sample)>;

/// Cuts samples at the ends of objects and then evenly by bytes: B bytes of an
/// object make floor(B / piece_bytes) pieces, at least one, and never more than
/// it has samples. Gives the first sample of each piece, and the number of all
/// samples. A piece may have no samples, if those of an object do not lie in
/// their order. Asks for each span twice, so that none needs to be kept.
/// REQUIRES: piece_bytes > 0.
std::vector<std::uint64_t> cut_into_pieces(std::uint64_t samples,
                                           const SpanOf& span_of,
                                           std::uint64_t piece_bytes);

/// The same for the samples of a catalogue. A sample belongs to the object of
/// its first byte field that is present. If the catalogue's file says how
/// pieces of the usual length are cut, it is believed, which saves the work.
std::vector<std::uint64_t> pieces_of(const Catalogue& catalogue,
                                     std::uint64_t piece_bytes);

}  // namespace leat
