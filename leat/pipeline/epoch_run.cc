// How a sample travels: plan_batch() reserves and fetch() sends its reads; the
// last read to come back calls arrive(), which gives the sample to the
// executor; run_ops() fills its row; finish() counts it, and the last one of a
// batch makes the batch ready. Every sample that plan() has counted as under
// way is finished exactly once, whatever fails: that is what the destructor
// waits for.
//
// Longer than our other files: one walk, whose steps share all their state.

#include "leat/pipeline/epoch_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "leat/base/units.h"
#include "leat/pipeline/piece_plan.h"
#include "leat/plan/dealing.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

Error cancelled() {
  return Error(ErrorCode::kCancelled, "the epoch was ended");
}

Buffer copy_of(const void* number) {
  Buffer bytes(sizeof(std::int64_t));
  std::memcpy(bytes.data(), number, bytes.size());
  return bytes;
}

/// Puts a number or a text where ops look for bytes. A text stays where it is.
void take_from_catalogue(const Catalogue& catalogue,
                         const DeliveredField& field, SampleWork& sample) {
  SampleWork::Fetched taken{.column = field.column};
  if (field.kind == FieldKind::kString) {
    taken.bytes = as_bytes(catalogue.string(field.column, sample.id));
  } else if (field.kind == FieldKind::kInt64) {
    const std::int64_t value = catalogue.int64(field.column, sample.id);
    taken.buffer = copy_of(&value);
  } else {
    const double value = catalogue.float64(field.column, sample.id);
    taken.buffer = copy_of(&value);
  }
  if (field.kind != FieldKind::kString) taken.bytes = taken.buffer.span();
  sample.fetched.push_back(std::move(taken));
}

bool has_work_for_threads(const RunContext& context) {
  return context.has_hashes || context.pieces != nullptr ||
         std::ranges::any_of(context.fields, &DeliveredField::has_ops);
}

}  // namespace

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

EpochRun::EpochRun(const RunContext& context, std::uint64_t epoch,
                   EpochOrder order, Steps steps, PlanLimits limits,
                   std::optional<NextUse> next_use,
                   std::unique_ptr<HolderDealing> dealing,
                   std::optional<ReadyFirst> ready_first)
    : context_(context),
      epoch_(epoch),
      order_(std::move(order)),
      steps_(steps),
      needs_thread_(has_work_for_threads(context)),
      next_use_(std::move(next_use)),
      dealing_(std::move(dealing)),
      ready_first_(std::move(ready_first)),
      memory_(context.budget),
      limits_(limits),
      planner_([this] {
        name_this_thread("leat-planner");
        plan(stop_.get_token());
      }) {}

EpochRun::~EpochRun() {
  stop_.request_stop();
  planner_.join();
  for (const std::shared_ptr<BatchWork>& batch : batches_left()) {
    run_put_off(batch);
  }
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return under_way_ == 0;
  });
}

void EpochRun::adopt() {
  const MutexLock lock(mutex_);
  limits_.samples = PlanLimits::kNone;
  changed_.notify_all();
}

void EpochRun::look_ahead(std::uint64_t samples) {
  const MutexLock lock(mutex_);
  limits_.lookahead = samples;
  changed_.notify_all();
}

EpochRun::State EpochRun::wait_within(Nanoseconds timeout) {
  MutexLock lock(mutex_);
  draw_batch();
  const auto is_decided = [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    if (batches_.empty()) return has_ended_;
    return batches_.front()->is_ready.load(std::memory_order_acquire);
  };
  if (!changed_.wait_for(lock, timeout, is_decided)) return State::kNotYet;
  return batches_.empty() ? State::kEnd : State::kReady;
}

BatchWork& EpochRun::head() {
  const MutexLock lock(mutex_);
  return *batches_.front();
}

std::shared_ptr<BatchWork> EpochRun::take() {
  std::shared_ptr<BatchWork> batch;
  std::shared_ptr<BatchWork> next;
  {
    const MutexLock lock(mutex_);
    batch = std::move(batches_.front());
    batches_.pop_front();
    if (!batches_.empty()) next = batches_.front();
    taken_ += batch->size();
    ++taken_batches_;
    changed_.notify_all();
  }
  if (next != nullptr) run_put_off(next);
  return batch;
}

std::vector<std::shared_ptr<BatchWork>> EpochRun::batches_left() const {
  const MutexLock lock(mutex_);
  return {batches_.begin(), batches_.end()};
}

/// Whether a row for which there is no memory waits for its batch's turn: then
/// nothing that is delivered before holds any, and it goes on without.
bool EpochRun::puts_off(BatchWork& batch, SampleWork& sample) {
  const MutexLock lock(mutex_);
  if (stop_.stop_requested() || batches_.front().get() == &batch) return false;
  batch.put_off.push_back(&sample);
  return true;
}

void EpochRun::run_put_off(const std::shared_ptr<BatchWork>& batch) {
  std::vector<SampleWork*> rows;
  {
    const MutexLock lock(mutex_);
    rows.swap(batch->put_off);
  }
  for (SampleWork* row : rows) submit(batch, *row, /*may_wait=*/false);
}

std::uint64_t EpochRun::untaken() const {
  const MutexLock lock(mutex_);
  return begun_ - taken_;
}

RunRequests EpochRun::requests() const {
  // A hit counts as sent until the cache has said so. Hits are read first, so
  // that the difference is never negative.
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

Result<void> EpochRun::wait_for_leave(const std::stop_token& stop) {
  const std::uint64_t planned =
      std::max<std::uint64_t>(planned_samples_, sent_);
  MutexLock lock(mutex_);
  if (changed_.wait(lock, stop, [&]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
        return planned < limits_.samples &&
               planned_samples_ - taken_ < limits_.lookahead &&
               (!limits_.fetch_ahead ||
                planned_samples_ < limits_.fetch_ahead->asked()) &&
               to_make_ < most_to_make();
      })) {
    return {};
  }
  return cancelled();
}

/// Draws the samples of the next batch, if that was not done: the samples that
/// the draw asks for may then be planned. A step without samples of ours is the
/// last one.
void EpochRun::draw_batch() {
  if (!limits_.fetch_ahead || taken_batches_ == steps_.count()) return;
  FetchAhead& rule = *limits_.fetch_ahead;
  const std::uint64_t end = taken_ + steps_.slice(taken_batches_).size();
  if (rule.drawn() >= end) return;
  while (rule.drawn() < end) (void)rule.draw();
  changed_.notify_all();
}

/// Planned records are read even if another makes them first. If cached samples
/// come first, plan no more of them than keep threads and connections busy.
std::uint64_t EpochRun::most_to_make() const {
  constexpr std::uint64_t kLeast = 64;
  if (!ready_first_) return std::numeric_limits<std::uint64_t>::max();
  return std::max<std::uint64_t>(kLeast, largest_batch_);
}

/// Brings the dealing to where this run begins. False if stopped on the way.
bool EpochRun::begin_dealing(const std::stop_token& stop) {
  if (dealing_ == nullptr || steps_.count() == 0) return true;
  // Our own epoch and position, so there is no other error.
  return dealing_->seek(epoch_, steps_.all_ranks(0).begin, stop).has_value();
}

void EpochRun::plan(const std::stop_token& stop) {
  const bool is_dealt = begin_dealing(stop);
  tell_board();
  for (std::uint64_t step = 0; is_dealt && step < steps_.count(); ++step) {
    if (!wait_for_leave(stop)) break;
    const std::vector<std::uint64_t> positions = positions_of(step);
    std::vector<SampleId> ids;
    ids.reserve(positions.size());
    for (const std::uint64_t p : positions) {
      ids.push_back(order_.at(p % order_.size()));
    }
    if (ids.empty()) continue;  // A kept tail with fewer samples than ranks.
    auto batch = std::make_shared<BatchWork>(
        context_, epoch_, context_.first_step + step, std::move(ids));
    batch->position_after = context_.first_sample + steps_.position_after(step);
    if (ready_first_) batch->left_behind = ready_first_->left_behind();
    for (std::size_t row = 0; row < batch->size(); ++row) {
      batch->sample(row).hits = &hits_;
      batch->sample(row).position = positions[row];
      batch->sample(row).is_valid = positions[row] < order_.size();
      batch->sample(row).order =
          (epoch_ << 40) + context_.first_sample + next_order_++;
    }
    {
      const MutexLock lock(mutex_);
      batches_.push_back(batch);
      under_way_ += batch->size();
      begun_ += batch->size();
      largest_batch_ = std::max<std::uint64_t>(largest_batch_, batch->size());
    }
    planning_ = batch;
    std::size_t planned = 0;
    Result<void> result = plan_batch(*batch, planned, stop);
    planning_.reset();
    // The batch's own memory is freed by itself; the pieces are for others too.
    memory_.let_go(memory_.held_bytes());
    for (const auto& [block, piece] : pieces_) {
      memory_.hold(piece.piece->bytes.size());
    }
    if (!result) {
      batch->plan_error = std::move(result).error();
      for (std::size_t row = planned; row < batch->size(); ++row) {
        finish(batch, batch->sample(row));
      }
      break;
    }
  }
  pieces_.clear();
  has_planned_all_ = true;
  const MutexLock lock(mutex_);
  has_ended_ = true;
  changed_.notify_all();
}

std::vector<std::uint64_t> EpochRun::positions_of(std::uint64_t step) {
  if (context_.locality == Locality::kSticky) {
    return positions_at_home(steps_, step, order_, context_.first_sample);
  }
  if (ready_first_) {
    return ready_first_->next_step(
        [this](std::uint64_t position) { return is_cached(position); },
        [this](std::uint64_t position) { return is_coming(position); });
  }
  const StepSlice slice = steps_.slice(step);
  std::vector<std::uint64_t> positions;
  if (dealing_ != nullptr) {
    dealt_next_.clear();
    for (const DealtSample& dealt : dealing_->next_step()) {
      if (dealt.rank != steps_.rank().rank) continue;
      positions.push_back(dealt.position);
      dealt_next_.push_back(dealt.next_use);
    }
    return positions;
  }
  positions.resize(slice.size());
  std::iota(positions.begin(), positions.end(), slice.begin);
  return positions;
}

/// Whether who shares our cache reads the sample again, for all that is known.
bool EpochRun::is_ours(SampleId sample) const {
  if (context_.locality != Locality::kSticky) return true;
  const RankRun& readers = context_.readers;
  const std::uint32_t home =
      home_of(context_.in_dataset(sample), readers.world_size);
  return home >= readers.first && home < readers.first + readers.count;
}

// `planned` counts the rows that somebody else will finish from now on. There
// is no error once these are all of them: the last one may be reading it.
Result<void> EpochRun::plan_batch(BatchWork& batch, std::size_t& planned,
                                  const std::stop_token& stop) {
  std::size_t learned_rows = 0;
  const std::uint64_t held_before = memory_.held_bytes();
  if (!batch.has_shapes()) {
    LEAT_TRY_VOID(learn_shapes(batch, learned_rows, stop));
  }
  const std::uint64_t learned_bytes = memory_.held_bytes() - held_before;
  LEAT_TRY_VOID(reserve_slots(batch, stop));
  memory_.let_go(learned_bytes);  // With slots, those rows go on by themselves.
  for (; planned < learned_rows; ++planned) {
    run_ops(planning_, batch.sample(planned));
  }
  planned_samples_ += learned_rows;
  while (planned < batch.size()) {
    LEAT_TRY_VOID(wait_for_leave(stop));
    if (stop.stop_requested()) return cancelled();
    ++planned_samples_;
    begin_fetch(batch.sample(planned), stop);
    ++planned;
  }
  return {};
}

// Fetches rows one after another, before there are slots, until one tells the
// shapes that only the data knows. Those rows keep their bytes.
Result<void> EpochRun::learn_shapes(BatchWork& batch, std::size_t& learned_rows,
                                    const std::stop_token& stop) {
  std::optional<Error> why;
  while (learned_rows < batch.size() && !batch.has_shapes()) {
    SampleWork& sample = batch.sample(learned_rows);
    {
      const MutexLock lock(mutex_);
      held_ = &sample;
      has_held_arrived_ = false;
    }
    begin_fetch(sample, stop);
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
        return has_held_arrived_;
      });
      held_ = nullptr;
    }
    if (stop.stop_requested()) return cancelled();
    ++learned_rows;
    why = sample.error();
    for (const SampleWork::Fetched& fetched : sample.fetched) {
      memory_.hold(fetched.reservation.bytes());
    }
    if (!why) why = learn_from(sample);
  }
  if (!batch.has_shapes()) {
    const Error error =
        why.value_or(Error(ErrorCode::kNotFound, "no sample has the field"));
    return Error(error).while_doing(
        fmt::format("learning the shape of the batch from sample \"{}\"",
                    context_.catalogue.key(batch.sample(0).id)));
  }
  return {};
}

// Answers why it could not be learnt from.
std::optional<Error> EpochRun::learn_from(const SampleWork& sample) {
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.source != FieldSource::kProgram || field.program->output() ||
        (field.is_fetched() &&
         context_.catalogue.range(field.column, sample.id).is_missing())) {
      continue;
    }
    Result<TensorSpec> spec =
        field.program->output_for(sample.bytes_of(field.column));
    if (!spec) return std::move(spec).error();
    context_.shapes.learn(
        f, {.spec = *std::move(spec),
            .key = std::string(context_.catalogue.key(sample.id))});
  }
  return std::nullopt;
}

Result<void> EpochRun::reserve_slots(BatchWork& batch,
                                     const std::stop_token& stop) {
  const BatchWork::SlotBytes needed = batch.slot_bytes(memory_.room_bytes());
  const std::uint64_t bytes = needed.total();
  LEAT_TRY(
      Reservation reservation,
      reserve(bytes,
              fmt::format("the slots of a batch of {} samples", batch.size()),
              stop));
  memory_.hold(bytes);
  batch.take_slots(std::move(reservation), needed);
  return {};
}

Result<Reservation> EpochRun::reserve(std::uint64_t bytes,
                                      std::string_view what,
                                      const std::stop_token& stop) {
  return memory_.reserve(
      bytes, what,
      context_.pieces == nullptr ? "" : " or the window= of the shuffle", stop);
}

void EpochRun::begin_fetch(SampleWork& sample, const std::stop_token& stop) {
  if (context_.board != nullptr) sample.next_turn = turn_after(sample);
  if (Result<void> sent = fetch(sample, stop); !sent) {
    sample.fail(std::move(sent).error());
  }
  // Set where a read of its own was sent.
  const bool has_reads = sample.times.reserved != TimePoint();
  if (!has_reads) sample.times.reserved = SteadyClock().now();
  const TimePoint reserved = sample.times.reserved;
  // The planner's own share of `pending`: from here the reads decide.
  if (sample.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    arrive(planning_, sample, has_reads ? SteadyClock().now() : reserved);
  }
}

Result<void> EpochRun::fetch(SampleWork& sample, const std::stop_token& stop) {
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.is_fetched()) {
      LEAT_TRY_VOID(fetch_field(sample, f, stop));
    } else if (field.has_ops() || field.source == FieldSource::kOnlyRead) {
      take_from_catalogue(context_.catalogue, field, sample);
    }
  }
  if (shares_piece(sample)) release_planned_piece(sample.id);
  return {};
}

// Padding repeats samples whose pieces are long gone: it reads them by
// themselves.
bool EpochRun::shares_piece(const SampleWork& sample) const {
  return context_.pieces != nullptr && sample.is_valid;
}

std::optional<ReadHint> EpochRun::hint_for(const SampleWork& sample) {
  if (!next_use_) return std::nullopt;
  if (dealing_ != nullptr) {
    return ReadHint{.now = next_use_->time_of(epoch_, sample.position),
                    .next_use = dealt_next_[sample.row]};
  }
  ReadHint hint = hint_for(sample.id, sample.position, sample.position + 1);
  hint.sample = context_.in_dataset(sample.id).value;
  return hint;
}

// All of a piece is used within its epoch; then comes the next one.
std::optional<ReadHint> EpochRun::hint_for_piece(SampleId first) {
  if (!next_use_) return std::nullopt;
  ReadHint hint = hint_for(first, order_.position_of(first), order_.size());
  if (context_.decoded != nullptr && context_.decoded->share() == 1) {
    // Its samples are kept one by one: see fetch_record.cc.
    hint.is_offered = false;
    hint.next_use = kNever;
  }
  return hint;
}

// In a block shuffle the window of a sample's block is near enough, and known
// without an order of its own.
ReadHint EpochRun::hint_for(SampleId sample, std::uint64_t position,
                            std::uint64_t after) {
  const std::uint64_t begin = context_.first_sample;
  AccessTime next = kNever;
  if (context_.windows != nullptr && is_ours(sample)) {
    next = next_use_->block_at_or_after(context_.windows->block_of(sample),
                                        epoch_, begin + order_.size());
  } else if (is_ours(sample)) {
    next = next_use_->at_or_after(sample, epoch_, begin + after);
  }
  return {.now = next_use_->time_of(epoch_, begin + position),
          .next_use = next};
}

Result<void> EpochRun::fetch_field(SampleWork& sample, std::size_t f,
                                   const std::stop_token& stop) {
  const DeliveredField& field = context_.fields[f];
  const ByteRange range = context_.catalogue.range(field.column, sample.id);
  if (range.is_missing() || range.length_bytes == 0) return {};
  // Two fields made of one column fetch it once.
  if (!sample.bytes_of(field.column).empty()) return {};
  LEAT_TRY(const bool is_decoded, fetch_record(sample, f, range, stop));
  if (is_decoded) return {};
  if (shares_piece(sample)) return fetch_from_piece(sample, f, stop);
  std::span<std::byte> into;
  SampleWork::Fetched fetched{.column = field.column};
  if (field.source == FieldSource::kRaw &&
      sample.batch->batch.fields.size() > f) {
    into = sample.batch->raw_span(f, sample.row);
  } else {
    LEAT_TRY(fetched.reservation,
             reserve(range.length_bytes,
                     fmt::format("the bytes of sample \"{}\"",
                                 context_.catalogue.key(sample.id)),
                     stop));
    fetched.buffer = Buffer(range.length_bytes);
    into = fetched.buffer.span();
  }
  fetched.bytes = into;
  sample.fetched.push_back(std::move(fetched));
  sample.times.reserved = SteadyClock().now();
  const std::uint32_t reads = context_.reads_for(range.length_bytes);
  sample.pending.fetch_add(reads, std::memory_order_relaxed);
  send_reads(range, reads, into, &sample, hint_for(sample), arrival_of(sample));
  return {};
}

/// The callback of a sample's own read when it is done.
std::function<void(Result<void>)> EpochRun::arrival_of(SampleWork& sample) {
  return [this, batch = planning_, &sample](Result<void> result) {
    if (!result) sample.fail(std::move(result).error());
    if (sample.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      arrive(batch, sample, SteadyClock().now());
    }
  };
}

void EpochRun::send_reads(ByteRange range, std::uint32_t reads,
                          std::span<std::byte> into, ReadObserver* observer,
                          std::optional<ReadHint> hint,
                          const std::function<void(Result<void>)>& done) {
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
                        stop_.get_token(), done);
  }
}

Result<void> EpochRun::fetch_from_piece(SampleWork& sample, std::size_t f,
                                        const std::stop_token& stop) {
  const ByteRange range =
      context_.catalogue.range(context_.fields[f].column, sample.id);
  LEAT_TRY(const std::shared_ptr<Piece> piece,
           piece_for(sample.id, range, stop));
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
  piece->when_done([this, batch = planning_, &sample](const Piece& whole) {
    if (std::optional<Error> error = whole.error()) {
      sample.fail(*std::move(error));
    }
    sample.waited_with(whole);
    if (sample.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      arrive(batch, sample, SteadyClock().now());
    }
  });
  return {};
}

Result<std::shared_ptr<Piece>> EpochRun::piece_for(
    SampleId sample, ByteRange range, const std::stop_token& stop) {
  const std::uint64_t block = context_.pieces->block_of(sample);
  if (const auto found = pieces_.find(block); found != pieces_.end()) {
    return found->second.piece;
  }
  // A record has to be the same bytes in every epoch, for any start of the
  // epoch.
  const PiecePlan plan = plan_piece(
      context_, order_, steps_, sample, range,
      next_use_ ? PieceExtent::kWholeBlock : PieceExtent::kWhatIsLeft);
  const std::uint64_t size = plan.range.length_bytes;
  LEAT_TRY(Reservation reservation,
           reserve(size,
                   fmt::format("a window of pieces of shards, {} each,",
                               format_bytes(size)),
                   stop));
  memory_.hold(size);
  const std::uint32_t reads = context_.reads_for(size);
  auto piece = std::make_shared<Piece>(plan.range, std::move(reservation),
                                       reads, &hits_);
  pieces_.emplace(block, PlannedPiece{piece, plan.samples});
  send_reads(plan.range, reads, piece->bytes.span(), piece.get(),
             hint_for_piece(sample), [this, piece](Result<void> result) {
               // Counted first: after it the run may be gone.
               retried_ += piece->take_retries();
               piece->read_done(std::move(result));
             });
  return piece;
}

void EpochRun::release_planned_piece(SampleId sample) {
  const auto found = pieces_.find(context_.pieces->block_of(sample));
  if (found == pieces_.end() || --found->second.samples_left != 0) return;
  memory_.let_go(found->second.piece->bytes.size());
  pieces_.erase(found);
}

void EpochRun::arrive(const std::shared_ptr<BatchWork>& batch,
                      SampleWork& sample, TimePoint now) {
  sample.times.fetched = now;
  {
    const MutexLock lock(mutex_);
    if (held_ == &sample) {
      has_held_arrived_ = true;
      changed_.notify_all();
      return;
    }
  }
  run_ops(batch, sample);
}

void EpochRun::run_ops(const std::shared_ptr<BatchWork>& batch,
                       SampleWork& sample) {
  if (sample.has_failed() || stop_.stop_requested()) {
    if (stop_.stop_requested()) sample.fail(cancelled());
    finish(batch, sample);
    return;
  }
  if (!needs_thread_) {
    // Copying a few numbers costs less than waking a thread to do it.
    sample.times.decoded = SteadyClock().now();
    if (Result<void> filled = batch->fill(sample, 0); !filled) {
      sample.fail(std::move(filled).error());
    }
    finish(batch, sample);
    return;
  }
  submit(batch, sample, /*may_wait=*/true);
}

void EpochRun::submit(const std::shared_ptr<BatchWork>& batch,
                      SampleWork& sample, bool may_wait) {
  context_.executor.submit(
      sample.order, [this, batch, &sample, may_wait](Executor::Turn& turn) {
        sample.times.decoded = turn.began;  // Until here: for a thread.
        if (may_wait && !stop_.stop_requested() &&
            !batch->finds_room_for_values(sample) && !sample.has_failed() &&
            puts_off(*batch, sample)) {
          return;
        }
        if (stop_.stop_requested()) {
          sample.fail(cancelled());
        } else if (!sample.has_failed()) {
          if (Result<void> filled = batch->fill(sample, turn.thread); !filled) {
            sample.fail(std::move(filled).error());
          }
        }
        turn.ended = finish(batch, sample);
      });
}

TimePoint EpochRun::finish(const std::shared_ptr<BatchWork>& batch,
                           SampleWork& sample) {
  retried_ += sample.retries();
  if (context_.board != nullptr) {
    context_.board->used(epoch_, sample.id, sample.next_turn);
  }
  const bool was_to_make = sample.is_to_make;
  const BatchWork::RowEnd end = batch->finish(sample);
  const MutexLock lock(mutex_);
  --under_way_;
  if (was_to_make && to_make_-- == most_to_make()) changed_.notify_all();
  if (end.is_last || under_way_ == 0) changed_.notify_all();
  return end.at;
}

}  // namespace leat
