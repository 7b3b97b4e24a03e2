#include "leat/pipeline/record_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leat {
namespace {

/// A record that is to be made may take this many times the bytes
/// that it is made from.
constexpr std::uint64_t kUsualGrowth = 32;
/// The next record is taken to have at most this many times the bytes of the
/// longest so far.
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

}  // namespace

RecordReads::RecordReads(const RunContext& context, EpochPlan& plan,
                         SampleReads& reads, BatchQueue& queue,
                         std::stop_token stop)
    : context_(context),
      plan_(plan),
      reads_(reads),
      queue_(queue),
      stop_(std::move(stop)) {}

Result<void> RecordReads::fetch(SampleWork& sample, std::size_t f,
                                ByteRange range) {
  LEAT_TRY(const bool is_record, fetch_record(sample, f, range));
  if (is_record) return {};
  return reads_.fetch(sample, f, range);
}

std::unique_ptr<RecordWork> RecordReads::work_of(const SampleWork& sample,
                                                 std::size_t f,
                                                 ByteRange range) {
  auto work = std::make_unique<RecordWork>();
  work->cut = context_.decoded->cut_of(context_.fields[f].column);
  work->hint = *plan_.hint_for(sample);
  work->id = {.object = context_.object_id(range.object),
              .offset = range.offset,
              .length_bytes = range.length_bytes};
  if (work->cut != nullptr) work->id.made_by = work->cut->name();
  return work;
}

/// True if the column is on its way, with a RecordWork. False: it is fetched
/// like any other.
Result<bool> RecordReads::fetch_record(SampleWork& sample, std::size_t f,
                                       ByteRange range) {
  DecodedForm* const form = context_.decoded;
  // The first samples, which tell the shapes, are read before there are slots.
  if (form == nullptr || !plan_.has_hints() ||
      sample.batch->batch.fields.empty() ||
      context_.reads_for(range.length_bytes) != 1) {
    return false;
  }
  const bool is_kept = form->keeps(context_.in_dataset(sample.id));
  std::unique_ptr<RecordWork> work = work_of(sample, f, range);
  if (work->cut == nullptr) {
    // Beside a decoded sample, or the piece were needed for its sake.
    if (!is_kept || !reads_.shares_piece(sample, range)) return false;
    LEAT_TRY_VOID(fetch_to_keep(sample, f, range, std::move(work)));
    return true;
  }
  const std::optional<std::uint64_t> held =
      form->records().record_bytes(work->id);
  if (held && is_plausible(*held, *work->cut) &&
      reads_.can_fit(std::max(*held, range.length_bytes))) {
    LEAT_TRY_VOID(find(sample, f, range, std::move(work), *held));
    return true;
  }
  if (is_kept) queue_.add_to_make(sample);
  // A record that nobody reads again is not worth making.
  if (work->hint.next_use == kNever && !form->is_for_later_runs() &&
      context_.board == nullptr) {
    return false;
  }
  work->trial = form->begin_trial();
  if (work->trial == nullptr && !is_kept) {
    // A piece that is kept whole has no sample made before the next epoch.
    work->is_open = form->is_open() && !reads_.shares_piece(sample, range);
    if (!work->is_open) return false;
    LEAT_TRY_VOID(fetch_to_keep(sample, f, range, std::move(work)));
    return true;
  }
  work->room_bytes = work->cut->record_bytes().value_or(
      room_for(range.length_bytes, form->longest_record()));
  if (!reads_.can_fit(work->room_bytes + range.length_bytes)) {
    if (work->trial != nullptr) work->trial->end_without_record();
    return false;
  }
  LEAT_TRY_VOID(fetch_to_keep(sample, f, range, std::move(work)));
  return true;
}

Result<void> RecordReads::find(SampleWork& sample, std::size_t f,
                               ByteRange range,
                               std::unique_ptr<RecordWork> work,
                               std::uint64_t record_bytes) {
  SampleWork::Fetched fetched{.column = context_.fields[f].column};
  const std::uint64_t most = std::max(record_bytes, range.length_bytes);
  LEAT_TRY(
      fetched.reservation,
      reads_.reserve(most, fmt::format("the decoded sample \"{}\"",
                                       context_.catalogue.key(sample.id))));
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
      stop_,
      [this, found, record, range, &sample,
       bytes = into.first(range.length_bytes),
       done = reads_.arrival_of(sample)](std::optional<CacheLevel> level) {
        if (level && found->cut->can_read(record)) {
          sample.hits->count_decoded(*level);
          found->record = record;
          return done({});
        }
        reads_.send(range, 1, bytes, &sample, found->hint, done);
      });
  return {};
}

// The thread that runs the ops offers a record: made of the bytes, or, out of a
// piece, the bytes themselves. A piece is shared, so only the made record has
// memory of its own.
Result<void> RecordReads::fetch_to_keep(SampleWork& sample, std::size_t f,
                                        ByteRange range,
                                        std::unique_ptr<RecordWork> work) {
  RecordId bytes_id = work->id;
  bytes_id.made_by.reset();
  const bool takes_piece = reads_.shares_piece(sample, range) &&
                           !context_.decoded->records().record_bytes(bytes_id);
  SampleWork::Fetched fetched{.column = context_.fields[f].column};
  const std::uint64_t wanted =
      work->room_bytes + (takes_piece ? 0 : range.length_bytes);
  if (wanted != 0) {
    LEAT_TRY(fetched.reservation,
             reads_.reserve(
                 wanted, fmt::format("the bytes of sample \"{}\" and what is "
                                     "made of them for the cache",
                                     context_.catalogue.key(sample.id))));
  }
  if (takes_piece) {
    LEAT_TRY_VOID(reads_.fetch_from_piece(sample, f, range));
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
  auto send = [this, to_make, range, into, &sample,
               done = reads_.arrival_of(sample)] {
    reads_.send(range, 1, into, &sample, to_make->hint, done);
  };
  if (context_.board == nullptr || to_make->cut == nullptr) {
    send();
  } else {
    take_turn(sample, *to_make, std::move(send));
  }
  return {};
}

/// One of the processes that share the cache makes the record; `send` asks for
/// the bytes.
void RecordReads::take_turn(SampleWork& sample, RecordWork& work,
                            std::function<void()> send) {
  RecordCache& records = context_.decoded->records();
  const bool is_others = records.is_coming(work.id);
  records.take_turn(work.id, stop_,
                    [this, &work, &sample, is_others,
                     asked = SteadyClock().now(), send = std::move(send),
                     done = reads_.arrival_of(sample)](bool is_there) {
                      if (is_others || is_there) {
                        sample.other_job_awaited(asked, SteadyClock().now());
                      }
                      if (is_there && find_made(sample, work, send, done))
                        return;
                      work.turn_of = &context_.decoded->records();
                      send();
                    });
}

/// Takes a record that another process has made into the room that was reserved
/// for making it; `send` asks for the bytes instead. False: it has no room.
bool RecordReads::find_made(SampleWork& sample, RecordWork& work,
                            std::function<void()> send,
                            SampleReads::Done done) {
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
               stop_,
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
std::vector<RecordId> RecordReads::records_of(std::uint64_t position) const {
  const SampleId sample = plan_.order().at(position);
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

bool RecordReads::is_cached(std::uint64_t position) const {
  return std::ranges::all_of(records_of(position), [&](const RecordId& id) {
    return context_.cached != nullptr && context_.cached->record_bytes(id);
  });
}

bool RecordReads::is_coming(std::uint64_t position) const {
  return context_.cached != nullptr &&
         std::ranges::any_of(records_of(position), [&](const RecordId& id) {
           return context_.cached->is_coming(id);
         });
}

}  // namespace leat
