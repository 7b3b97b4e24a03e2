#include "scan_board.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "derivation.h"
#include "gil.h"
#include "leat/base/errors.h"

namespace py = pybind11;

namespace leat {
namespace {

/// Calls a `leat._job._scan_board.ScanBoard`. Python hears Ctrl-C in such a
/// call as well. Nobody here waits for it, so it comes again once they are
/// done.
class PythonScanBoard final : public ScanBoard {
 public:
  explicit PythonScanBoard(py::object board)
      : board_(std::move(board)),
        rank_{.rank = board_.attr("rank").cast<std::uint32_t>(),
              .world_size = board_.attr("world_size").cast<std::uint32_t>()} {}
  ~PythonScanBoard() override {
    const GilHeld locked;
    board_ = py::object();
  }

  Rank rank() const override { return rank_; }

  std::string begin(std::string_view place) override {
    const GilHeld locked;
    return call_python(board_.attr("begin"), place).cast<std::string>();
  }

  void end(const std::string& opening, std::size_t shards) override {
    const GilHeld locked;
    bool is_interrupted = false;
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        call_python(board_.attr("end"), opening, shards);
        break;
      } catch (const py::error_already_set& raised) {
        if (!raised.matches(PyExc_KeyboardInterrupt)) break;
        is_interrupted = true;  // Perhaps by the one that ask() passed on.
      }
    }
    if (is_interrupted) PyErr_SetInterrupt();
  }

  Result<bool> claim(const std::string& name, std::string_view text) override {
    return ask<bool>([&] {
      return call_python(board_.attr("claim"), name, text).cast<bool>();
    });
  }

  Result<bool> put(const std::string& name, std::string_view bytes) override {
    return ask<bool>([&] {
      return call_python(board_.attr("put"), name,
                         py::bytes(bytes.data(), bytes.size()))
          .cast<bool>();
    });
  }

  Result<std::optional<std::string>> get(const std::string& name) override {
    return read("get", name);
  }

  Result<std::optional<std::string>> text(const std::string& name) override {
    return read("text", name);
  }

 private:
  Result<std::optional<std::string>> read(const char* method,
                                          const std::string& name) {
    using Found = std::optional<std::string>;
    return ask<Found>([&] {
      const py::object found = call_python(board_.attr(method), name);
      return found.is_none() ? Found() : Found(found.cast<std::string>());
    });
  }

  template <class Answer, class Call>
  static Result<Answer> ask(const Call& call) {
    const GilHeld locked;
    try {
      return call();
    } catch (const py::error_already_set& raised) {
      if (!raised.matches(PyExc_KeyboardInterrupt)) return error_of(raised);
      PyErr_SetInterrupt();
      return Error(ErrorCode::kCancelled, "interrupted");
    } catch (const std::exception& error) {  // An answer of another type.
      return unavailable(error.what());
    }
  }

  py::object board_;
  const Rank rank_;
};

}  // namespace

std::shared_ptr<ScanBoard> scan_board() {
  py::object board =
      py::module_::import("leat._job._scan_board").attr("board")();
  if (board.is_none()) return nullptr;
  return std::make_shared<PythonScanBoard>(std::move(board));
}

}  // namespace leat
