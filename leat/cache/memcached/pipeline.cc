#include "leat/cache/memcached/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "leat/base/check.h"

namespace leat {
namespace {

using Kind = ReplyEvent::Kind;

/// The approximate overhead that memcached stores beside a value: its item and
/// the name.
constexpr std::size_t kItemOverheadBytes = 104;

/// If there is no such value, makes an empty one and tells us that we have won
/// the right to bring it; others are then told that it is coming. The claim
/// expires after this many seconds.
constexpr std::string_view kClaim = " N10";

std::span<std::byte> part_of(const PeerOperation& operation,
                             std::uint32_t piece) {
  return operation.into.subspan(
      static_cast<std::size_t>(operation.split.offset_of(piece)),
      operation.split.bytes_of(piece));
}

}  // namespace

void PeerPipeline::ask(const PeerOperationRef& operation) {
  operation->answer = PeerAnswer::kYes;
  operation->unanswered = operation->split.pieces;
  // The first piece is stored last: a reader that finds it finds the others.
  for (std::uint32_t piece = operation->split.pieces; piece-- > 0;) {
    waiting_.push_back({.operation = operation, .piece = piece});
  }
}

void PeerPipeline::ask_statistics(std::string_view command,
                                  HearStatistic hear) {
  outbox_ += fmt::format("{}\r\n", command);
  owed_.push_back({.operation = nullptr, .hear = std::move(hear)});
}

std::span<const std::byte> PeerPipeline::to_send() {
  if (outbox_sent_ == outbox_.size()) {
    outbox_.clear();
    outbox_sent_ = 0;
    while (!waiting_.empty() && outbox_.size() < kOutboxBytes) {
      append(waiting_.front());
      owed_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
  return half_sent();
}

void PeerPipeline::append(const Command& command) {
  const PeerOperation& operation = *command.operation;
  const std::string name = piece_name(operation.key, command.piece);
  auto out = std::back_inserter(outbox_);
  switch (operation.kind) {
    case PeerOperation::Kind::kFind:
      fmt::format_to(out, "mg {} T{} v{}\r\n", name, ttl_.count(),
                     command.piece == 0 ? kClaim : "");
      return;
    case PeerOperation::Kind::kDrop:
      fmt::format_to(out, "md {}\r\n", name);
      return;
    case PeerOperation::Kind::kInsert:
      break;
  }
  const auto payload = operation.value->span().subspan(
      static_cast<std::size_t>(operation.split.offset_of(command.piece)),
      operation.split.bytes_of(command.piece));
  const PieceHeader header =
      seal_.make_header(operation.key, operation.split, command.piece, payload);
  fmt::format_to(out, "ms {} {} T{}\r\n", name,
                 kPieceHeaderBytes + payload.size(), ttl_.count());
  outbox_ += as_text(header);
  outbox_ += as_text(payload);
  outbox_ += "\r\n";
}

bool PeerPipeline::receive(std::span<const std::byte> bytes) {
  while (true) {
    const ReplyEvent event = parser_.next(bytes);
    if (event.kind == Kind::kMore) return true;
    if (!hear(event)) return false;
  }
}

bool PeerPipeline::hear(const ReplyEvent& event) {
  if (event.kind == Kind::kBroken || owed_.empty()) return false;
  Command& command = owed_.front();
  return command.operation == nullptr ? hear_statistic(command, event)
                                      : hear_of(command, event);
}

bool PeerPipeline::hear_statistic(Command& command, const ReplyEvent& event) {
  if (event.kind == Kind::kStatistic) {
    command.hear(event.text);
    return true;
  }
  if (event.kind != Kind::kStatisticsEnd) return false;
  const Command heard = std::move(command);
  owed_.pop_front();
  heard.hear(std::nullopt);
  return true;
}

bool PeerPipeline::hear_of(Command& command, const ReplyEvent& event) {
  const bool is_find = command.operation->kind == PeerOperation::Kind::kFind;
  switch (event.kind) {
    case Kind::kValue:
      begin_value(command, event);
      return is_find;
    case Kind::kBytes:
      take(command, event.payload);
      return true;
    case Kind::kValueEnd:
      return settle_front(judge(command));
    case Kind::kMiss:
    case Kind::kNotStored:
    case Kind::kFailed:
      return settle_front(PeerAnswer::kNo);
    case Kind::kDone:
      return !is_find && settle_front(PeerAnswer::kYes);
    case Kind::kNoMemory:
      refusal_ = command.operation->split.bytes_of(command.piece) +
                 kPieceHeaderBytes + kItemOverheadBytes;
      return settle_front(PeerAnswer::kNoMemory);
    default:
      return false;
  }
}

void PeerPipeline::begin_value(const Command& command,
                               const ReplyEvent& event) {
  taken_ = 0;
  is_of_another_size_ =
      event.bytes !=
      kPieceHeaderBytes + command.operation->split.bytes_of(command.piece);
  instead_ = PeerAnswer::kWrong;
  if (event.bytes == 0) {
    instead_ = event.is_won ? PeerAnswer::kNo : PeerAnswer::kComing;
  }
}

void PeerPipeline::take(const Command& command,
                        std::span<const std::byte> bytes) {
  if (is_of_another_size_) return;
  if (taken_ < kPieceHeaderBytes) {
    const std::size_t at = static_cast<std::size_t>(taken_);
    const std::size_t some = std::min(kPieceHeaderBytes - at, bytes.size());
    std::memcpy(header_.data() + at, bytes.data(), some);
    taken_ += some;
    bytes = bytes.subspan(some);
  }
  if (bytes.empty()) return;
  // The size was checked, so the value fits.
  const auto into =
      part_of(*command.operation, command.piece)
          .subspan(static_cast<std::size_t>(taken_ - kPieceHeaderBytes));
  LEAT_CHECK(bytes.size() <= into.size());
  std::memcpy(into.data(), bytes.data(), bytes.size());
  taken_ += bytes.size();
}

PeerAnswer PeerPipeline::judge(const Command& command) {
  if (is_of_another_size_) return instead_;
  const PeerOperation& operation = *command.operation;
  return seal_.is_piece(header_, operation.key, operation.split, command.piece,
                        part_of(operation, command.piece))
             ? PeerAnswer::kYes
             : PeerAnswer::kWrong;
}

bool PeerPipeline::settle_front(PeerAnswer answer) {
  // Removed first: the caller may submit more when it is answered.
  const PeerOperationRef operation = std::move(owed_.front().operation);
  owed_.pop_front();
  settle(operation, answer);
  return true;
}

std::optional<TimePoint> PeerPipeline::first_due() const {
  for (const auto* list : {&owed_, &waiting_}) {
    for (const Command& command : *list) {
      if (command.operation != nullptr) return command.operation->due;
    }
  }
  return {};
}

std::optional<std::size_t> PeerPipeline::take_refusal() {
  return std::exchange(refusal_, std::nullopt);
}

void PeerPipeline::give_up() {
  std::deque<Command> given_up = std::move(owed_);
  std::move(waiting_.begin(), waiting_.end(), std::back_inserter(given_up));
  owed_.clear();
  waiting_.clear();
  outbox_.clear();
  outbox_sent_ = 0;
  parser_ = MemcachedReplyParser();
  for (Command& command : given_up) {
    if (command.operation != nullptr) {
      settle(command.operation, PeerAnswer::kUnreachable);
    }
  }
}

}  // namespace leat
