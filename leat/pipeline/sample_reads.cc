#include "leat/pipeline/sample_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/base/units.h"
#include "leat/runtime/log.h"

namespace leat {

RunRequests& RunRequests::operator+=(const RunRequests& more) {
  sent += more.sent;
  retried += more.retried;
  bytes += more.bytes;
  misses += more.misses;
  ram_hits += more.ram_hits;
  disk_hits += more.disk_hits;
  peer_hits += more.peer_hits;
  decoded_hits += more.decoded_hits;
  return *this;
}

SampleReads::SampleReads(const RunContext& context, EpochPlan& plan,
                         std::stop_token stop, Arrive arrive)
    : context_(context),
      plan_(plan),
      stop_(std::move(stop)),
      arrive_(std::move(arrive)),
      memory_(context.budget) {}

RunRequests SampleReads::requests() const {
  // A hit counts as sent until the cache has said so. Read first, so that what
  // is left is never less than none.
  const std::uint64_t hits = hits_.total();
  const std::uint64_t hit_bytes = hits_.bytes();
  const std::uint64_t in_ram = hits_.decoded_of(CacheLevel::kRam);
  const std::uint64_t on_disk = hits_.decoded_of(CacheLevel::kDisk);
  return {.sent = sent_ - hits,
          .retried = retried_,
          .bytes = bytes_ - hit_bytes,
          .misses = sent_ - hits,
          .ram_hits = hits_.of(CacheLevel::kRam) + in_ram,
          .disk_hits = hits_.of(CacheLevel::kDisk) + on_disk,
          .peer_hits = hits_.of(CacheLevel::kPeer),
          .decoded_hits = in_ram + on_disk};
}

Result<Reservation> SampleReads::reserve(std::uint64_t bytes,
                                         std::string_view what) {
  return memory_.reserve(
      bytes, what,
      context_.pieces == nullptr ? "" : " or the window= of the shuffle",
      stop_);
}

void SampleReads::let_go_of_batch() {
  memory_.let_go(memory_.held_bytes());
  for (const auto& [block, pieces] : pieces_) {
    for (const PlannedPiece& planned : pieces) {
      if (planned.piece) memory_.hold(planned.piece->bytes.size());
    }
  }
}

Result<void> SampleReads::fetch(SampleWork& sample, std::size_t f,
                                ByteRange range) {
  if (shares_piece(sample, range)) return fetch_from_piece(sample, f, range);
  const DeliveredField& field = context_.fields[f];
  std::span<std::byte> into;
  SampleWork::Fetched fetched{.column = field.column};
  if (field.source == FieldSource::kRaw &&
      sample.batch->batch.fields.size() > f) {
    into = sample.batch->slots().raw_span(f, sample.row);
  } else {
    LEAT_TRY(fetched.reservation,
             reserve(range.length_bytes,
                     fmt::format("the bytes of sample \"{}\"",
                                 context_.catalogue.key(sample.id))));
    fetched.buffer = Buffer(range.length_bytes);
    into = fetched.buffer.span();
  }
  fetched.bytes = into;
  sample.fetched.push_back(std::move(fetched));
  sample.times.reserved = SteadyClock().now();
  const std::uint32_t reads = context_.reads_for(range.length_bytes);
  sample.pending.fetch_add(reads, std::memory_order_relaxed);
  send(range, reads, into, &sample, plan_.hint_for(sample), arrival_of(sample));
  return {};
}

void SampleReads::fetch_substitute(SampleWork& sample, std::size_t f,
                                   ByteRange range) {
  SampleWork::Fetched fetched{.column = context_.fields[f].column};
  fetched.reservation = sample.take_kept(range.length_bytes, context_.budget);
  fetched.buffer = Buffer(range.length_bytes);
  const std::span<std::byte> into = fetched.buffer.span();
  fetched.bytes = into;
  sample.fetched.push_back(std::move(fetched));
  const std::uint32_t reads = context_.reads_for(range.length_bytes);
  sample.pending.fetch_add(reads, std::memory_order_relaxed);
  send(range, reads, into, &sample, std::nullopt, arrival_of(sample));
}

SampleReads::Done SampleReads::arrival_of(SampleWork& sample) const {
  return [this, batch = sample.batch->shared_from_this(),
          &sample](Result<void> result) {
    if (!result) sample.fail(std::move(result).error());
    if (sample.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      arrive_(batch, sample, SteadyClock().now());
    }
  };
}

void SampleReads::send(ByteRange range, std::uint32_t reads,
                       std::span<std::byte> into, ReadObserver* observer,
                       std::optional<ReadHint> hint, const Done& done) {
  const std::uint64_t each = (range.length_bytes + reads - 1) / reads;
  sent_ += reads;
  bytes_ += range.length_bytes;
  for (std::uint32_t i = 0; i < reads; ++i) {
    const std::uint64_t begin = i * each;
    const std::uint64_t size = std::min(each, range.length_bytes - begin);
    context_.store.read({.object = context_.object_id(range.object),
                         .offset = range.offset + begin,
                         .into = into.subspan(begin, size),
                         .observer = observer,
                         .hint = hint},
                        stop_, done);
  }
}

Result<void> SampleReads::fetch_from_piece(SampleWork& sample, std::size_t f,
                                           ByteRange range) {
  PlannedPiece& planned = *piece_with(pieces_of(sample, range), sample.id);
  if (planned.piece == nullptr) {
    LEAT_TRY(planned.piece, read_piece(planned, sample.id));
  }
  const std::shared_ptr<Piece> piece = planned.piece;
  if (piece->object != range.object || range.offset < piece->begin ||
      range.offset + range.length_bytes > piece->begin + piece->bytes.size()) {
    return Error(ErrorCode::kInternal,
                 "a piece does not hold the bytes of its sample");
  }
  sample.fetched.push_back(
      {.column = context_.fields[f].column,
       .buffer = Buffer(),
       .reservation = Reservation(),
       .piece = piece,
       .bytes = piece->bytes.span().subspan(range.offset - piece->begin,
                                            range.length_bytes)});
  sample.pending.fetch_add(1, std::memory_order_relaxed);
  piece->when_done([this, batch = sample.batch->shared_from_this(),
                    &sample](const Piece& whole) {
    if (std::optional<Error> error = whole.error()) {
      sample.fail(*std::move(error));
    }
    sample.waited_with(whole);
    if (sample.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      arrive_(batch, sample, SteadyClock().now());
    }
  });
  return {};
}

std::vector<SampleReads::PlannedPiece>& SampleReads::pieces_of(
    const SampleWork& sample, ByteRange range) {
  const std::uint64_t block = context_.pieces->block_of(sample.id);
  const auto [found, is_new] = pieces_.try_emplace(block);
  if (!is_new) return found->second;
  // A record has to be the same bytes in every epoch, wherever that begins.
  for (const PiecePlan& plan :
       plan_pieces(context_, plan_, sample.id, sample.position, range,
                   plan_.has_hints() ? PieceExtent::kWholeBlock
                                     : PieceExtent::kWhatIsLeft)) {
    found->second.push_back({.plan = plan,
                             .samples_left = plan.samples,
                             .is_alone = !has_room_for(plan)});
  }
  return found->second;
}

SampleReads::PlannedPiece* SampleReads::piece_with(
    std::vector<PlannedPiece>& pieces, SampleId sample) {
  const auto after = std::ranges::upper_bound(
      pieces, sample.value, {},
      [](const PlannedPiece& one) { return one.plan.first.value; });
  if (after == pieces.begin() || (after - 1)->plan.last.value < sample.value) {
    return nullptr;
  }
  return &*(after - 1);
}

/// Pieces leave a quarter of the memory to batches, or none would fit.
bool SampleReads::has_room_for(const PiecePlan& plan) const {
  if (!context_.can_read_alone) return true;
  std::uint64_t held = plan.range.length_bytes;
  for (const auto& [block, pieces] : pieces_) {
    for (const PlannedPiece& planned : pieces) {
      if (!planned.is_alone) held += planned.plan.range.length_bytes;
    }
  }
  const std::uint64_t most = context_.budget.capacity_bytes() / 4 * 3;
  if (held <= most) return true;
  if (!context_.said_no_room->exchange(true)) {
    log_warning(fmt::format(
        "memory= has room for {} of pieces of shards, and the shuffle mixes "
        "more at a time: samples of other pieces are read one by one, which "
        "is slower and costs a request each; raise memory= well above {}, or "
        "lower window= of the shuffle",
        format_bytes(most),
        format_bytes(context_.budget.figure_for(held / 3 * 4))));
  }
  return false;
}

Result<std::shared_ptr<Piece>> SampleReads::read_piece(PlannedPiece& planned,
                                                       SampleId first) {
  const ByteRange range = planned.plan.range;
  const std::uint64_t size = range.length_bytes;
  LEAT_TRY(Reservation reservation,
           reserve(size, fmt::format("a window of pieces of shards, {} each,",
                                     format_bytes(size))));
  const std::uint32_t reads = context_.reads_for(size);
  auto piece =
      std::make_shared<Piece>(range, std::move(reservation), reads, &hits_);
  memory_.hold(size);
  std::optional<ReadHint> hint = plan_.hint_for_piece(first);
  if (hint && context_.decoded != nullptr && context_.decoded->share() == 1) {
    // Its samples are kept one by one: see record_reads.h.
    hint->is_offered = false;
    hint->next_use = kNever;
  }
  send(range, reads, piece->bytes.span(), piece.get(), hint,
       [this, piece](Result<void> result) {
         // Counted first: after it the run may be gone.
         count_retries(piece->take_retries());
         piece->read_done(std::move(result));
       });
  return piece;
}

bool SampleReads::shares_piece(const SampleWork& sample, ByteRange range) {
  if (!takes_pieces(sample)) return false;
  const PlannedPiece* const planned =
      piece_with(pieces_of(sample, range), sample.id);
  return planned != nullptr && !planned->is_alone &&
         planned->plan.range.object == range.object;
}

void SampleReads::release_piece(const SampleWork& sample) {
  if (!takes_pieces(sample)) return;
  const auto found = pieces_.find(context_.pieces->block_of(sample.id));
  if (found == pieces_.end()) return;
  PlannedPiece* const planned = piece_with(found->second, sample.id);
  if (planned == nullptr || --planned->samples_left != 0) return;
  if (planned->piece != nullptr) {
    memory_.let_go(planned->piece->bytes.size());
  }
  found->second.erase(found->second.begin() + (planned - found->second.data()));
  if (found->second.empty()) pieces_.erase(found);
}

}  // namespace leat
