#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "leat/base/env.h"
#include "leat/base/units.h"
#include "leat/cache/memcached/server_process.h"
#include "leat/engine/loader/job.h"
#include "leat/runtime/launcher.h"
#include "leat/runtime/limits.h"
#include "leat/runtime/log.h"

namespace py = pybind11;

namespace leat {
namespace {

constexpr std::uint64_t kLeastMemory = 64 << 20;

/// A quarter of what this node's processes may use.
std::uint64_t default_memory() {
  const std::uint64_t memory = effective_limits().memory_bytes;
  if (memory == Limits::kUnlimited) return kLeastMemory;
  return std::max(kLeastMemory, memory / 4);
}

std::uint64_t checked_memory(const std::string& memory) {
  const std::uint64_t bytes = value_or_raise(parse_bytes(memory));
  const std::uint64_t there = effective_limits().memory_bytes;
  if (bytes <= there) return bytes;
  return value_or_raise(Result<std::uint64_t>(Error(
      ErrorCode::kInvalidArgument,
      fmt::format("peer_memory= of {} is more than the {} of memory that this "
                  "node's processes may have; leave it out for a quarter of it",
                  format_bytes(bytes), format_bytes(there)))));
}

/// For the loaders of this many ranks, each of which has one. memcached cannot
/// have more than the files that it may open.
std::uint32_t connections_for(std::uint32_t ranks) {
  constexpr std::uint64_t kLeast = 1024;
  constexpr std::uint64_t kLoadersARank = 4;
  constexpr std::uint64_t kOtherFiles = 64;
  const std::uint64_t wanted =
      std::max(kLeast, kLoadersARank * ranks + kOtherFiles);
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_max = RLIM_INFINITY;
  if (files.rlim_max < ranks + kOtherFiles) {
    log_warning(fmt::format(
        "peers=\"auto\": this node's memcached may open {} files (ulimit -Hn), "
        "and {} ranks need a connection each: those that get none read from "
        "the "
        "bucket. Raise the limit to {}",
        files.rlim_max, ranks, wanted));
  }
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(wanted, files.rlim_max));
}

std::unique_ptr<ServerProcess> start_server(
    const std::string& address, const std::optional<std::string>& memory,
    std::uint32_t ranks) {
  ServerProcessOptions options;
  options.address = address;
  options.memory_bytes = memory ? checked_memory(*memory) : default_memory();
  options.threads = std::min(4U, effective_limits().threads());
  options.connections = connections_for(ranks);
  auto started = [&] {
    const GilReleased unlocked;
    return ServerProcess::start(options, process_env());
  }();
  return value_or_raise(std::move(started));  // May raise: with the GIL.
}

/// (world size, rank on this node, ranks on this node), as the launcher says.
std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> launched() {
  const Launch launch = value_or_raise(read_launch(process_env()));
  return {launch.rank.world_size, launch.local.rank, launch.local.world_size};
}

/// (rank, world size), as the launcher says; nullopt if there is none.
std::optional<std::pair<std::uint32_t, std::uint32_t>> launched_place() {
  const Launch launch = value_or_raise(read_launch(process_env()));
  if (launch.launcher.empty()) return std::nullopt;
  return std::pair(launch.rank.rank, launch.rank.world_size);
}

/// The bytes of a cache for processes that read the same in the same steps,
/// given the loader's memory: it holds what one has read and another has yet to
/// read. Twice that memory, since records leave it in whole segments; at most a
/// quarter of what this process may use, if that is more than the memory.
std::uint64_t ram_for_one_rank(const std::optional<std::string>& memory) {
  const Limits limits = effective_limits();
  const std::uint64_t bytes = memory ? value_or_raise(parse_bytes(*memory))
                                     : usual_memory_bytes(limits);
  return std::max(bytes, 2 * std::min(bytes, limits.memory_bytes / 8));
}

}  // namespace

void bind_peers(py::module_& module) {
  py::class_<ServerProcess>(module, "PeerServer")
      .def(py::init(&start_server), py::arg("address"), py::arg("memory"),
           py::arg("ranks") = 1)
      .def_property_readonly("name", &ServerProcess::name)
      .def_property_readonly("pid", &ServerProcess::pid);
  module.def("launched", &launched);
  module.def("launched_place", &launched_place);
  module.def("user_cache_folder",
             [] { return user_cache_folder(process_env()); });
  module.def("ram_for_one_rank", &ram_for_one_rank, py::arg("memory"));
  module.def("usable_cores", [] { return effective_limits().threads(); });
}

}  // namespace leat
