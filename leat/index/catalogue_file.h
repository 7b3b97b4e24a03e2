// Catalogues as files on this machine.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/runtime/launcher.h"

namespace leat {

struct MapOptions {
  /// Files up to this are copied: then nothing that happens to them can hurt.
  std::uint64_t most_copied_bytes = 64 << 20;
  /// Files up to this size have every byte checked. Only the structure of
  /// larger ones is checked, since reading them would take longer than the
  /// first batch.
  std::uint64_t most_checked_bytes = std::uint64_t{1} << 30;
};

/// How a rank of a job opens a catalogue that all ranks of its node open: the
/// first checks what it can, the others map it, and large ones open
/// immediately.
MapOptions map_options_of(const Launch& launch);

/// Opens a catalogue of this machine. A small file is copied into memory; a
/// large one is mapped, and remains readable as long as the Catalogue lives,
/// even if the file is replaced.
///
/// Errors:
///   kNotFound          no such file
///   kPermissionDenied  may not be read; others made it or can write it
///   kCorrupt           as Catalogue::open; names the path and what to do
///   kInvalidArgument   as Catalogue::open
Result<Catalogue> map_catalogue(const std::string& path,
                                const MapOptions& options = {});

/// When the file was written; the epoch if there is none.
std::chrono::sys_seconds written_at(const std::string& path);

/// Writes a file that is seen whole or not at all, and creates its folders.
///
/// Errors: kPermissionDenied, kResourceExhausted (disk full), kUnavailable
Result<void> write_catalogue(const std::string& path,
                             std::span<const std::byte> bytes);

/// The path of a place's catalogue on this machine, below catalogue_folder().
/// `identity` names the place, endpoint included. Returns nullopt if there is
/// no such folder, or if others can write to it; the latter is logged once.
std::optional<std::string> catalogue_cache_path(std::string_view identity,
                                                const Env& env);

}  // namespace leat
