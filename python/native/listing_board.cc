#include "listing_board.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "derivation.h"
#include "gil.h"
#include "leat/runtime/log.h"

namespace py = pybind11;

namespace leat {
namespace {

/// The process that lists, and the hash, size and time of what was posted.
using TurnInPython =
    std::tuple<std::string, std::string, std::uint64_t, std::int64_t>;

ListingTurn turn_of(const TurnInPython& given) {
  const auto& [who, hash, size_bytes, listed_at] = given;
  ListingTurn turn;
  if (who == "this") turn.who = ListingTurn::Who::kThis;
  if (who != "other") return turn;
  turn.who = ListingTurn::Who::kOther;
  turn.posted = {
      .hash = hash,
      .size_bytes = size_bytes,
      .listed_at = std::chrono::sys_seconds(std::chrono::seconds(listed_at))};
  return turn;
}

/// Calls a `leat._job._listing_board.ListingBoard`.
class PythonBoard final : public ListingBoard {
 public:
  explicit PythonBoard(py::object board) : board_(std::move(board)) {}
  ~PythonBoard() override {
    const GilHeld locked;
    board_ = py::object();
  }

  std::string begin(std::string_view place) override {
    const GilHeld locked;
    return call_python(board_.attr("begin"), place).cast<std::string>();
  }

  Result<ListingTurn> take_turn(const std::string& opening,
                                const std::stop_token& stop) override {
    const GilHeld locked;
    try {
      const auto is_stopped =
          py::cpp_function([stop] { return stop.stop_requested(); });
      return turn_of(call_python(board_.attr("take_turn"), opening, is_stopped)
                         .cast<TurnInPython>());
    } catch (const py::error_already_set& raised) {
      return error_of(raised);
    }
  }

  Result<Buffer> fetch(const std::string& opening) override {
    const GilHeld locked;
    try {
      const auto all =
          call_python(board_.attr("fetch"), opening).cast<py::bytes>();
      const auto view = all.cast<std::string_view>();
      Buffer bytes(view.size());
      std::memcpy(bytes.data(), view.data(), view.size());
      return bytes;
    } catch (const py::error_already_set& raised) {
      return error_of(raised);
    }
  }

  void post(const std::string& opening, const PostedCatalogue& posted,
            std::span<const std::byte> bytes) override {
    tell([&] {
      const std::string_view text = as_text(bytes);
      call_python(board_.attr("post"), opening, posted.hash,
                  posted.listed_at.time_since_epoch().count(),
                  py::bytes(text.data(), text.size()));
    });
  }

  void give_up(const std::string& opening) override {
    tell([&] { call_python(board_.attr("give_up"), opening); });
  }

 private:
  template <class Tell>
  static void tell(const Tell& tell) {
    const GilHeld locked;
    try {
      tell();
    } catch (const py::error_already_set& raised) {
      // The other nodes list for themselves.
      log_warning(std::string("the job's store: ") + raised.what());
    }
  }

  py::object board_;
};

}  // namespace

std::shared_ptr<ListingBoard> listing_board() {
  py::object board =
      py::module_::import("leat._job._listing_board").attr("board")();
  if (board.is_none()) return nullptr;
  return std::make_shared<PythonBoard>(std::move(board));
}

}  // namespace leat
