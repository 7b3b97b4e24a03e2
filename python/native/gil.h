// The interpreter's lock, taken and let go by threads that may outlive Python.
#pragma once
#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <optional>
#include <utility>

namespace leat {

/// Before 3.14 a Python that has begun to end unwinds a thread that asks for
/// its lock (pthread_exit, docs.python.org/3.11/c-api/init.html), which ends
/// the process with SIGABRT once a destructor is met. Such a thread waits here
/// instead, until the process is gone; so does Python 3.14.
template <class Take>
void or_wait_for_end(const Take& take) {
  try {
    take();
  } catch (const abi::__forced_unwind&) {
    for (;;) ::pause();
  }
}

/// The GIL is held while this lives. For any thread.
class GilHeld {
 public:
  GilHeld() {
    or_wait_for_end([this] { lock_.emplace(); });
  }
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;

 private:
  std::optional<pybind11::gil_scoped_acquire> lock_;
};

/// The GIL is let go while this lives. REQUIRES: this thread holds it.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() {
    or_wait_for_end([this] { PyEval_RestoreThread(state_); });
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

/// Calls Python on a thread of the engine. Nothing is unwound if Python ends in
/// the call: what would be let go needs its lock. REQUIRES: the GIL is held.
template <class... Args>
pybind11::object call_python(const pybind11::handle& callable, Args&&... args) {
  const pybind11::tuple all = pybind11::make_tuple(std::forward<Args>(args)...);
  PyObject* returned = nullptr;
  or_wait_for_end(
      [&] { returned = PyObject_CallObject(callable.ptr(), all.ptr()); });
  if (returned == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(returned);
}

}  // namespace leat
