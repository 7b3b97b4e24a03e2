// The part of EpochRun that asks a cache for samples, above all for decoded
// ones. Whether there is
// a record the index of the tier says at once, so the planner knows what to
// reserve: for a record that is there, as much as it or the bytes take, for the
// bytes come into the same place should it turn out to be bad; for one that is
// to be made, the bytes and the record.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "leat/pipeline/epoch_run.h"

namespace leat {
namespace {

/// A bound for a record that is to be made, times its bytes.
constexpr std::uint64_t kUsualGrowth = 32;
/// Times the longest so far, that the next one is thought to have at most.
constexpr std::uint64_t kMostMore = 4;

/// For a record whose length the header will say, once it is there.
std::uint64_t room_for(std::uint64_t length_bytes, std::uint64_t longest) {
  const std::uint64_t usual = kUsualGrowth * length_bytes;
  return longest == 0 ? usual
                      : std::max(longest, std::min(usual, kMostMore * longest));
}

/// A length that a disk says may be anything.
bool is_plausible(std::uint64_t record_bytes, const Cut& cut) {
  return record_bytes != 0 &&
         record_bytes == cut.record_bytes().value_or(record_bytes);
}

/// `reads` before it. Later than a turn can be is as late as one can be.
ReadTurn turn_of(std::uint64_t reads) {
  return static_cast<ReadTurn>(
      std::min<std::uint64_t>(reads + 1, std::numeric_limits<ReadTurn>::max()));
}

}  // namespace

/// True if the column is on its way, with a RecordWork. False: it is fetched
/// like any other.
Result<bool> EpochRun::fetch_record(SampleWork& sample, std::size_t f,
                                    ByteRange range,
                                    const std::stop_token& stop) {
  DecodedForm* form = context_.decoded;
  // The first samples, which tell the shapes, are read before there are slots.
  if (form == nullptr || !next_use_ || sample.batch->batch.fields.empty() ||
      context_.reads_for(range.length_bytes) != 1) {
    return false;
  }
  const bool is_kept = form->keeps(context_.in_dataset(sample.id));
  auto work = std::make_unique<RecordWork>();
  work->cut = form->cut_of(context_.fields[f].column);
  work->hint = *hint_for(sample);
  work->id = {.object = context_.object_id(range.object),
              .offset = range.offset,
              .length_bytes = range.length_bytes};
  if (work->cut == nullptr) {
    // Beside a decoded sample, or the piece were needed for its sake.
    if (!is_kept || !shares_piece(sample)) return false;
    LEAT_TRY_VOID(fetch_to_keep(sample, f, range, std::move(work), stop));
    return true;
  }
  work->id.made_by = work->cut->name();
  const std::optional<std::uint64_t> held =
      form->records().record_bytes(work->id);
  if (held && is_plausible(*held, *work->cut) &&
      memory_.can_fit(std::max(*held, range.length_bytes))) {
    LEAT_TRY_VOID(find_record(sample, f, range, std::move(work), *held, stop));
    return true;
  }
  if (is_kept && !sample.is_to_make) {
    const MutexLock lock(mutex_);
    sample.is_to_make = true;
    ++to_make_;
  }
  // A record that nobody reads again is not worth making.
  if (work->hint.next_use == kNever && !form->is_for_later_runs() &&
      context_.board == nullptr) {
    return false;
  }
  work->trial = form->begin_trial();
  if (work->trial == nullptr && !is_kept) {
    // In a piece that is kept whole, no sample is made before the next epoch.
    work->is_open = form->is_open() && !shares_piece(sample);
    if (!work->is_open) return false;
    LEAT_TRY_VOID(fetch_to_keep(sample, f, range, std::move(work), stop));
    return true;
  }
  work->room_bytes = work->cut->record_bytes().value_or(
      room_for(range.length_bytes, form->longest_record()));
  if (!memory_.can_fit(work->room_bytes + range.length_bytes)) {
    if (work->trial != nullptr) work->trial->end_without_record();
    return false;
  }
  LEAT_TRY_VOID(fetch_to_keep(sample, f, range, std::move(work), stop));
  return true;
}

Result<void> EpochRun::find_record(SampleWork& sample, std::size_t f,
                                   ByteRange range,
                                   std::unique_ptr<RecordWork> work,
                                   std::uint64_t record_bytes,
                                   const std::stop_token& stop) {
  SampleWork::Fetched fetched{.column = context_.fields[f].column};
  const std::uint64_t most = std::max(record_bytes, range.length_bytes);
  LEAT_TRY(fetched.reservation,
           reserve(most,
                   fmt::format("the decoded sample \"{}\"",
                               context_.catalogue.key(sample.id)),
                   stop));
  fetched.buffer = Buffer(most);
  const std::span<std::byte> into = fetched.buffer.span();
  fetched.bytes = into.first(range.length_bytes);
  RecordWork* const found = work.get();
  fetched.record_work = std::move(work);
  sample.fetched.push_back(std::move(fetched));
  sample.times.reserved = SteadyClock().now();
  sample.pending.fetch_add(1, std::memory_order_relaxed);
  const std::span<std::byte> record = into.first(record_bytes);
  context_.decoded->records().find(
      {.id = found->id,
       .into = record,
       .observer = &sample,
       .hint = found->hint},
      stop_.get_token(),
      [this, found, record, range, &sample,
       bytes = into.first(range.length_bytes),
       done = arrival_of(sample)](std::optional<CacheLevel> level) {
        if (level && found->cut->can_read(record)) {
          sample.hits->count_decoded(*level);
          found->record = record;
          return done({});
        }
        send_reads(range, 1, bytes, &sample, found->hint, done);
      });
  return {};
}

// The thread that runs the ops offers a record: of the value that it made of
// the bytes or, in a piece, of the bytes if nothing is made of them. In a piece
// that others share, only made records have memory of their own.
Result<void> EpochRun::fetch_to_keep(SampleWork& sample, std::size_t f,
                                     ByteRange range,
                                     std::unique_ptr<RecordWork> work,
                                     const std::stop_token& stop) {
  RecordId bytes_id = work->id;
  bytes_id.made_by.reset();
  const bool takes_piece = shares_piece(sample) &&
                           !context_.decoded->records().record_bytes(bytes_id);
  SampleWork::Fetched fetched{.column = context_.fields[f].column};
  const std::uint64_t wanted =
      work->room_bytes + (takes_piece ? 0 : range.length_bytes);
  if (wanted != 0) {
    LEAT_TRY(fetched.reservation,
             reserve(wanted,
                     fmt::format("the bytes of sample \"{}\" and what is made "
                                 "of them for the cache",
                                 context_.catalogue.key(sample.id)),
                     stop));
  }
  if (takes_piece) {
    LEAT_TRY_VOID(fetch_from_piece(sample, f, stop));
    sample.fetched.back().reservation = std::move(fetched.reservation);
    sample.fetched.back().record_work = std::move(work);
    return {};
  }
  fetched.buffer = Buffer(range.length_bytes);
  const std::span<std::byte> into = fetched.buffer.span();
  fetched.bytes = into;
  // Its bytes are kept until a record takes their place: the next epoch may
  // want them before the ops have run.
  RecordWork* const to_make = work.get();
  fetched.record_work = std::move(work);
  sample.fetched.push_back(std::move(fetched));
  sample.times.reserved = SteadyClock().now();
  sample.pending.fetch_add(1, std::memory_order_relaxed);
  auto send = [this, to_make, range, into, &sample, done = arrival_of(sample)] {
    send_reads(range, 1, into, &sample, to_make->hint, done);
  };
  if (context_.board == nullptr || to_make->cut == nullptr) {
    send();
    return {};
  }
  RecordCache& records = context_.decoded->records();
  const bool is_others = records.is_coming(to_make->id);
  records.take_turn(
      to_make->id, stop_.get_token(),
      [this, to_make, &sample, is_others, asked = SteadyClock().now(),
       send = std::move(send), done = arrival_of(sample)](bool is_there) {
        if (is_others || is_there) {
          sample.other_job_awaited(asked, SteadyClock().now());
        }
        if (is_there && find_made(sample, *to_make, send, done)) return;
        to_make->turn_of = &context_.decoded->records();
        send();
      });
  return {};
}

/// Takes a record that another process has made into the room that was reserved
/// for making it; `send` asks for the bytes instead. False: it has no room.
bool EpochRun::find_made(SampleWork& sample, RecordWork& work,
                         std::function<void()> send,
                         std::function<void(Result<void>)> done) {
  RecordCache& records = context_.decoded->records();
  const std::optional<std::uint64_t> held = records.record_bytes(work.id);
  if (!held || !is_plausible(*held, *work.cut) || *held > work.room_bytes) {
    return false;
  }
  work.made = Buffer(*held);
  records.find({.id = work.id,
                .into = work.made.span(),
                .observer = &sample,
                .hint = work.hint},
               stop_.get_token(),
               [&sample, &work, send = std::move(send),
                done = std::move(done)](std::optional<CacheLevel> level) {
                 if (!level || !work.cut->can_read(work.made.span())) {
                   return send();
                 }
                 sample.hits->count_decoded(*level);
                 work.record = work.made.span();
                 work.room_bytes = 0;
                 work.trial.reset();  // Nothing was made: another one tries.
                 done({});
               });
  return true;
}

/// All that is read of a sample, in the form that a cache keeps.
std::vector<RecordId> EpochRun::records_of(std::uint64_t position) const {
  const SampleId sample = order_.at(position);
  const DecodedForm* form = context_.decoded;
  const bool is_kept =
      form != nullptr && form->keeps(context_.in_dataset(sample));
  std::vector<RecordId> records;
  for (const DeliveredField& field : context_.fields) {
    if (!field.is_fetched()) continue;
    const ByteRange range = context_.catalogue.range(field.column, sample);
    if (range.is_missing() || range.length_bytes == 0) continue;
    RecordId id{.object = context_.object_id(range.object),
                .offset = range.offset,
                .length_bytes = range.length_bytes};
    const Cut* cut = is_kept ? form->cut_of(field.column) : nullptr;
    if (cut != nullptr) id.made_by = cut->name();
    records.push_back(std::move(id));
  }
  return records;
}

bool EpochRun::is_cached(std::uint64_t position) const {
  return std::ranges::all_of(records_of(position), [&](const RecordId& id) {
    return context_.cached != nullptr && context_.cached->record_bytes(id);
  });
}

/// Whether another process is about to bring some of it.
bool EpochRun::is_coming(std::uint64_t position) const {
  return context_.cached != nullptr &&
         std::ranges::any_of(records_of(position), [&](const RecordId& id) {
           return context_.cached->is_coming(id);
         });
}

/// Tells the run's future reads to jobs that share the cache. A sample that the
/// run takes as soon as it is cached has the next turn at any time.
void EpochRun::tell_board() {
  if (context_.board == nullptr) return;
  const std::uint64_t samples = order_.size();
  UseBoard::Reading reading{.epoch = epoch_,
                            .turns = std::vector<ReadTurn>(samples),
                            .ranks = steps_.rank().world_size};
  const auto read = [&](std::uint64_t position) {
    if (position >= samples) return;
    reading.turns[order_.at(position).value] =
        ready_first_ ? 1 : turn_of(position);
  };
  for (std::uint64_t step = 0; step < steps_.count(); ++step) {
    const StepSlice slice = steps_.slice(step);
    if (step == 0) reading.begin = slice.begin;
    for (std::uint64_t p = slice.begin; p < slice.end; ++p) read(p);
  }
  if (ready_first_) {
    for (const std::uint64_t p : ready_first_->left_behind()) read(p);
  }
  context_.board->begin_epoch(reading);
}

/// When it is read again, once it has been read now.
ReadTurn EpochRun::turn_after(const SampleWork& sample) {
  const std::optional<ReadHint> hint = hint_for(sample);
  if (!hint || hint->next_use == kNever) return 0;
  const std::uint64_t epochs = hint->next_use / kEpochTime - epoch_;
  const std::uint64_t position = hint->next_use % kEpochTime;
  return turn_of(epochs * order_.size() + (ready_first_ ? 0 : position));
}

}  // namespace leat
