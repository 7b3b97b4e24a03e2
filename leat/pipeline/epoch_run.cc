// How a sample travels: plan_batch() reserves memory and fetch() sends its
// reads; the last read to return calls arrive(), which passes the sample to
// the executor; run_ops() fills its row; finish() counts it, and the last one
// of a batch makes the batch ready. Every row that plan() has counted as
// started is finished exactly once, whatever fails: the destructor waits for
// that. A row whose sample is passed over begins again before that, with
// another sample: replace() sends its reads.

#include "leat/pipeline/epoch_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/pipeline/substitution.h"
#include "leat/pipeline/within_memory.h"
#include "leat/runtime/start_thread.h"
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
  return context.has_hashes || context.has_checksums ||
         context.pieces != nullptr ||
         std::ranges::any_of(context.fields, &DeliveredField::has_ops);
}

/// Calls; the sample fails with its error, or of memory that the system
/// refuses.
template <class Call>
void or_fail(SampleWork& sample, const Call& call) {
  Result<void> done = within_memory(call);
  if (!done) sample.fail(std::move(done).error());
}

/// By field, where only the data determines the shape.
using ToldShapes = std::vector<std::pair<std::size_t, LearnedShapes::Shape>>;

Result<ToldShapes> shapes_told_by(const RunContext& context,
                                  const SampleWork& sample) {
  ToldShapes told;
  for (std::size_t f = 0; f < context.fields.size(); ++f) {
    const DeliveredField& field = context.fields[f];
    if (field.source != FieldSource::kProgram || field.program->output() ||
        (field.is_fetched() &&
         context.catalogue.range(field.column, sample.id).is_missing())) {
      continue;
    }
    LEAT_TRY(TensorSpec spec,
             field.program->output_for(sample.bytes_of(field.column)));
    told.push_back({f,
                    {.spec = std::move(spec),
                     .key = std::string(context.catalogue.key(sample.id))}});
  }
  return told;
}

}  // namespace

EpochRun::EpochRun(const RunContext& context, EpochPlanOptions plan,
                   const PlanLimits& limits)
    : context_(context),
      needs_thread_(has_work_for_threads(context)),
      plan_(context, std::move(plan)),
      queue_(plan_.steps(), limits, plan_.takes_cached_first()),
      reads_(context, plan_, stop_.get_token(),
             [this](const BatchRef& batch, SampleWork& sample, TimePoint now) {
               arrive(batch, sample, now);
             }),
      records_(context, plan_, reads_, queue_, stop_.get_token()),
      planner_(start_thread([this] {
        name_this_thread("leat-planner");
        this->plan(stop_.get_token());
      })) {}

EpochRun::~EpochRun() {
  stop_.request_stop();
  planner_.join();
  for (const BatchRef& batch : queue_.batches()) run_put_off(batch);
  queue_.wait_until_finished();
}

std::shared_ptr<BatchWork> EpochRun::take() {
  BatchQueue::Taken taken = queue_.take();
  if (taken.next != nullptr) run_put_off(taken.next);
  return std::move(taken.batch);
}

void EpochRun::run_put_off(const BatchRef& batch) {
  for (SampleWork* row : queue_.take_put_off(*batch)) {
    submit(batch, *row, /*may_wait=*/false);
  }
}

bool EpochRun::wait_for_leave(const std::stop_token& stop) {
  return queue_.wait_for_leave(planned_samples_, reads_.sent(), stop);
}

void EpochRun::plan(const std::stop_token& stop) {
  const bool is_dealt = plan_.begin(stop);
  plan_.tell_board();
  const std::uint64_t steps = plan_.steps().count();
  for (std::uint64_t step = 0; is_dealt && step < steps; ++step) {
    if (!wait_for_leave(stop)) break;
    const BatchRef batch = begin_batch(step);
    if (batch == nullptr) continue;
    std::size_t planned = 0;
    Result<void> result =
        within_memory([&] { return plan_batch(*batch, planned, stop); });
    reads_.let_go_of_batch();
    if (!result) {
      batch->plan_error = std::move(result).error();
      for (std::size_t row = planned; row < batch->size(); ++row) {
        finish(batch, batch->sample(row));
      }
      break;
    }
  }
  reads_.release_pieces();
  has_planned_all_ = true;
  queue_.end();
}

/// Null: a kept tail with fewer samples than ranks.
EpochRun::BatchRef EpochRun::begin_batch(std::uint64_t step) {
  const EpochOrder& order = plan_.order();
  const std::vector<std::uint64_t> positions = plan_.positions_of(
      step, [this](std::uint64_t at) { return records_.is_cached(at); },
      [this](std::uint64_t at) { return records_.is_coming(at); });
  std::vector<SampleId> ids;
  ids.reserve(positions.size());
  for (const std::uint64_t p : positions) {
    ids.push_back(order.at(p % order.size()));
  }
  if (ids.empty()) return nullptr;
  auto batch = std::make_shared<BatchWork>(
      context_, epoch(), context_.first_step + step, std::move(ids));
  batch->position_after =
      context_.first_sample + plan_.steps().position_after(step);
  batch->left_behind = plan_.left_behind();
  for (std::size_t row = 0; row < batch->size(); ++row) {
    SampleWork& sample = batch->sample(row);
    sample.hits = &reads_.hits();
    sample.position = positions[row];
    sample.is_valid = positions[row] < order.size();
    sample.order = (epoch() << 40) + context_.first_sample + next_order_++;
  }
  queue_.begin(batch);
  return batch;
}

// `planned` counts the rows that another thread will finish from now on. Once
// these are all rows there is no error: the last one may be reading it.
Result<void> EpochRun::plan_batch(BatchWork& batch, std::size_t& planned,
                                  const std::stop_token& stop) {
  std::size_t learned_rows = 0;
  const std::uint64_t held_before = reads_.held_bytes();
  if (!batch.has_shapes()) {
    LEAT_TRY_VOID(learn_shapes(batch, learned_rows, stop));
  }
  const std::uint64_t learned_bytes = reads_.held_bytes() - held_before;
  LEAT_TRY_VOID(reserve_slots(batch));
  reads_.let_go(learned_bytes);  // With slots, those rows go on by themselves.
  for (; planned < learned_rows; ++planned) {
    run_ops(batch.shared_from_this(), batch.sample(planned));
  }
  planned_samples_ += learned_rows;
  while (planned < batch.size()) {
    if (!wait_for_leave(stop) || stop.stop_requested()) return cancelled();
    ++planned_samples_;
    begin_fetch(batch.sample(planned));
    ++planned;
  }
  return {};
}

// Before there are slots, fetches rows one after another, until one reveals the
// shapes that only the data determines. Those rows keep their bytes.
Result<void> EpochRun::learn_shapes(BatchWork& batch, std::size_t& learned_rows,
                                    const std::stop_token& stop) {
  std::optional<Error> why;
  const auto learn_when_here = [this](SampleWork& sample) {
    queue_.wait_for_held();
    const std::optional<Error> failed = sample.error();
    return failed ? failed : learn_from(sample);
  };
  while (learned_rows < batch.size() && !batch.has_shapes()) {
    SampleWork& sample = batch.sample(learned_rows);
    queue_.hold(sample);
    begin_fetch(sample);
    why = learn_when_here(sample);
    while (why && may_replace(context_, sample, *why) &&
           !stop.stop_requested()) {
      sample.fail(*why);
      queue_.hold(sample);
      replace(batch.shared_from_this(), sample);
      why = learn_when_here(sample);
    }
    if (stop.stop_requested()) return cancelled();
    ++learned_rows;
    for (const SampleWork::Fetched& fetched : sample.fetched) {
      reads_.hold(fetched.reservation.bytes());
    }
  }
  if (!batch.has_shapes()) {
    const Error error = why.value_or(not_found("no sample has the field"));
    return Error(error).while_doing(
        fmt::format("learning the shape of the batch from sample \"{}\"",
                    context_.catalogue.key(batch.sample(0).id)));
  }
  return {};
}

// Returns the reason if nothing could be learnt from it. A sample that its ops
// exclude tells no shape: no row will have it. A large one for which there is
// no memory is taken untried.
std::optional<Error> EpochRun::learn_from(SampleWork& sample) {
  Result<ToldShapes> told = shapes_told_by(context_, sample);
  if (!told) return std::move(told).error();
  if (!told->empty() && may_pass_over(context_)) {
    Result<void> tried;
    queue_.hold(sample);
    context_.executor.submit(sample.order, [&](Executor::Turn& turn) {
      tried = within_memory([&] {
        return sample.batch->try_row(sample, turn.thread, stop_.get_token());
      });
      turn.ended = SteadyClock().now();
      (void)queue_.arrived(sample);  // The last use: the planner goes on.
    });
    queue_.wait_for_held();
    sample.forget();
    if (!tried && may_replace(context_, sample, tried.error())) {
      return tried.error();
    }
  }
  for (auto& [f, shape] : *told) context_.shapes.learn(f, std::move(shape));
  return std::nullopt;
}

Result<void> EpochRun::reserve_slots(BatchWork& batch) {
  BatchSlots& slots = batch.slots();
  const BatchSlots::Bytes needed = slots.bytes_needed(reads_.room_bytes());
  const std::uint64_t bytes = needed.total();
  LEAT_TRY(
      Reservation reservation,
      reads_.reserve(bytes, fmt::format("the slots of a batch of {} samples",
                                        batch.size())));
  reads_.hold(bytes);
  slots.take(std::move(reservation), needed);
  return {};
}

void EpochRun::begin_fetch(SampleWork& sample) {
  if (context_.board != nullptr) sample.next_turn = plan_.turn_after(sample);
  sample.excluded = context_.excluded.find(context_.in_dataset(sample.id));
  if (sample.excluded) {
    reads_.release_piece(sample);
    if (!take_next(context_, plan_.order(), *sample.batch, sample)) {
      return sent_all(sample);
    }
  }
  // Reads that were sent before an error go on, and are waited for.
  or_fail(sample, [&] { return fetch(sample); });
  sent_all(sample);
}

void EpochRun::sent_all(SampleWork& sample) {
  // Set if it sent a read of its own.
  const bool has_reads = sample.times.reserved != TimePoint();
  if (!has_reads) sample.times.reserved = SteadyClock().now();
  const TimePoint reserved = sample.times.reserved;
  // From here on the reads decide.
  if (sample.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    arrive(sample.batch->shared_from_this(), sample,
           has_reads ? SteadyClock().now() : reserved);
  }
}

Result<void> EpochRun::fetch(SampleWork& sample) {
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.is_fetched()) {
      const ByteRange range = context_.catalogue.range(field.column, sample.id);
      if (range.is_missing() || range.length_bytes == 0) continue;
      // Two fields made from one column fetch it once.
      if (!sample.bytes_of(field.column).empty()) continue;
      if (sample.excluded) {
        reads_.fetch_substitute(sample, f, range);
      } else {
        LEAT_TRY_VOID(records_.fetch(sample, f, range));
      }
    } else if (field.has_ops() || field.source == FieldSource::kOnlyRead) {
      take_from_catalogue(context_.catalogue, field, sample);
    }
  }
  if (!sample.excluded) reads_.release_piece(sample);
  return {};
}

void EpochRun::arrive(const BatchRef& batch, SampleWork& sample,
                      TimePoint now) {
  sample.times.fetched = now;
  if (queue_.arrived(sample)) return;
  run_ops(batch, sample);
}

void EpochRun::run_ops(const BatchRef& batch, SampleWork& sample) {
  if (sample.has_failed() || stop_.stop_requested()) {
    if (stop_.stop_requested()) sample.fail(cancelled());
    end_row(batch, sample);
    return;
  }
  if (!needs_thread_) {
    // Copying a few numbers costs less than waking a thread for it.
    sample.times.decoded = SteadyClock().now();
    or_fail(sample, [&] { return batch->fill(sample, 0, stop_.get_token()); });
    end_row(batch, sample);
    return;
  }
  // The room for the row's values was found with its first sample.
  submit(batch, sample, /*may_wait=*/!sample.excluded);
}

void EpochRun::submit(const BatchRef& batch, SampleWork& sample,
                      bool may_wait) {
  context_.executor.submit(sample.order, [this, batch, &sample,
                                          may_wait](Executor::Turn& turn) {
    sample.times.decoded = turn.began;  // Until here: for a thread.
    if (may_wait && !stop_.stop_requested() &&
        !batch->slots().finds_room_for_values(sample) && !sample.has_failed() &&
        queue_.puts_off(*batch, sample, stop_.get_token())) {
      return;
    }
    if (stop_.stop_requested()) {
      sample.fail(cancelled());
    } else if (!sample.has_failed()) {
      or_fail(sample, [&] {
        return batch->fill(sample, turn.thread, stop_.get_token());
      });
    }
    turn.ended = end_row(batch, sample);
  });
}

TimePoint EpochRun::end_row(const BatchRef& batch, SampleWork& sample) {
  const std::optional<Error> failed = sample.error();
  if (!failed || !may_replace(context_, sample, *failed) ||
      stop_.stop_requested()) {
    return finish(batch, sample);
  }
  // Runs on another thread, since a store may answer at once, and the next
  // sample may be passed over as well.
  context_.executor.submit(sample.order,
                           [this, batch, &sample](Executor::Turn& turn) {
                             replace(batch, sample);
                             turn.ended = SteadyClock().now();
                           });
  return SteadyClock().now();
}

void EpochRun::replace(const BatchRef& batch, SampleWork& sample) {
  exclude(context_, sample);
  if (take_next(context_, plan_.order(), *batch, sample)) {
    or_fail(sample, [&] { return fetch(sample); });
  }
  sent_all(sample);
}

TimePoint EpochRun::finish(const BatchRef& batch, SampleWork& sample) {
  reads_.count_retries(sample.retries());
  if (context_.board != nullptr) {
    context_.board->used(epoch(), sample.planned, sample.next_turn);
  }
  const bool was_to_make = sample.is_to_make;
  const BatchWork::RowEnd end = batch->finish(sample);
  queue_.finish(was_to_make, end.is_last);
  return end.at;
}

}  // namespace leat
