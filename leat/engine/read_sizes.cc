#include "leat/engine/read_sizes.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "leat/cache/segment_format.h"
#include "leat/pipeline/run_context.h"
#include "leat/store/layers/derived_key.h"

namespace leat {
namespace {

ByteRange hull_of(ByteRange a, ByteRange b) {
  if (a.is_missing()) return b;
  if (b.is_missing() || b.object != a.object) return a;
  const std::uint64_t begin = std::min(a.offset, b.offset);
  const std::uint64_t end =
      std::max(a.offset + a.length_bytes, b.offset + b.length_bytes);
  return {.object = a.object, .offset = begin, .length_bytes = end - begin};
}

}  // namespace

std::uint64_t piece_bytes_of(const Catalogue& catalogue) {
  constexpr std::uint64_t kWhole = std::uint64_t{1} << 48;  // No object is.
  for (std::uint64_t i = 0; i < catalogue.objects(); ++i) {
    const auto object = ObjectIndex{static_cast<std::uint32_t>(i)};
    if (!is_derived_key(catalogue.object(object).key)) {
      return BlockMap::kDefaultPieceBytes;
    }
  }
  return kWhole;
}

namespace {

/// The mean length of the pieces that the objects are cut into, each at least
/// once.
std::uint64_t mean_piece_bytes(const Catalogue& catalogue,
                               std::uint64_t piece_bytes) {
  std::uint64_t bytes = 0;
  std::uint64_t pieces = 0;
  for (std::uint64_t i = 0; i < catalogue.objects(); ++i) {
    const std::uint64_t size =
        catalogue.object(ObjectIndex{static_cast<std::uint32_t>(i)}).size_bytes;
    bytes += size;
    pieces += std::max<std::uint64_t>(size / piece_bytes, 1);
  }
  pieces = std::min(pieces, catalogue.samples());  // No sample is cut.
  return bytes / std::max<std::uint64_t>(pieces, 1);
}

}  // namespace

std::size_t usual_in_flight(const Catalogue* catalogue, bool has_pieces,
                            std::size_t most) {
  constexpr std::uint64_t kBytesInFlight = 128 << 20;
  constexpr std::uint64_t kLeast = 16;
  if (catalogue == nullptr ||
      (catalogue->layout() == Layout::kShards && !has_pieces)) {
    return most;
  }
  // Long objects are read in parts.
  const std::uint64_t mean =
      std::min(mean_piece_bytes(*catalogue, BlockMap::kDefaultPieceBytes),
               2 * BlockMap::kDefaultPieceBytes);
  return std::clamp<std::size_t>(
      kBytesInFlight / std::max<std::uint64_t>(mean, 1),
      std::min<std::size_t>(kLeast, most), most);
}

std::uint32_t usual_window(Shuffle shuffle, const Catalogue* catalogue) {
  constexpr std::uint64_t kMixedBytes = 512 << 20;
  constexpr std::uint64_t kMost = 64;
  constexpr std::uint64_t kLeast = 4;
  if (shuffle != Shuffle::kBlock || catalogue == nullptr) {
    return OrderOptions{}.window_blocks;
  }
  const std::uint64_t mean =
      mean_piece_bytes(*catalogue, piece_bytes_of(*catalogue));
  // Pieces of at least the usual length, and less than twice that, are usual.
  if (mean < 2 * BlockMap::kDefaultPieceBytes) return kMost;
  return static_cast<std::uint32_t>(
      std::clamp(kMixedBytes / mean, kLeast, kMost));
}

ReadSize read_size_of(ByteRange range) {
  if (range.is_missing() || range.length_bytes == 0) return {.requests = 0};
  const std::uint32_t reads = reads_for(range.length_bytes, kUsualPartBytes);
  const std::uint64_t each = (range.length_bytes + reads - 1) / reads;
  return {.bytes = range.length_bytes,
          .cost = (reads - 1) * record_cost(each) +
                  record_cost(range.length_bytes - (reads - 1) * each),
          .requests = reads};
}

void read_as_usual(std::shared_ptr<const Catalogue> catalogue,
                   SweepOptions& job) {
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < catalogue->fields().size(); ++i) {
    if (catalogue->fields()[i].kind == FieldKind::kBytes) columns.push_back(i);
  }
  job.samples = catalogue->samples();
  job.objects = catalogue->objects();
  job.order.shuffle = usual_shuffle(catalogue->layout());
  job.tail = Tail::kDrop;
  job.order.window_blocks = usual_window(job.order.shuffle, catalogue.get());
  if (has_windows(job.order.shuffle)) {
    job.blocks = std::make_shared<BlockMap>(
        BlockMap::build(*catalogue, piece_bytes_of(*catalogue)));
  }
  if (catalogue->layout() != Layout::kShards) {
    job.unit = ReadUnit::kSample;
    job.read_size = [catalogue = std::move(catalogue),
                     columns = std::move(columns)](std::uint64_t sample) {
      ReadSize sum{.requests = 0};
      for (const std::size_t column : columns) {
        const ReadSize one =
            read_size_of(catalogue->range(column, SampleId{sample}));
        sum.bytes += one.bytes;
        sum.cost += one.cost;
        sum.requests += one.requests;
      }
      return sum;
    };
    return;
  }
  job.unit = ReadUnit::kBlock;
  job.read_size = [catalogue = std::move(catalogue),
                   columns = std::move(columns),
                   blocks = job.blocks](std::uint64_t block) {
    ByteRange piece;
    for (std::uint64_t id = blocks->first_sample(block);
         id < blocks->first_sample(block + 1); ++id) {
      for (const std::size_t column : columns) {
        piece = hull_of(piece, catalogue->range(column, SampleId{id}));
      }
    }
    return read_size_of(piece);
  };
}

}  // namespace leat
