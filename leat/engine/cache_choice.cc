// The options of a cache: checks those that were given, and chooses the others
// from the free memory and disk.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statfs.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/cache/segment_files.h"
#include "leat/cache/segment_format.h"
#include "leat/engine/caches.h"
#include "leat/plan/cache_policy_kind.h"
#include "leat/runtime/trust.h"

namespace leat {
namespace {

/// The usual upper bound of a decoded picture's size over that of its bytes.
constexpr std::uint64_t kUsualGrowth = 12;
/// A tier smaller than this is not worth adding unasked.
constexpr std::uint64_t kLeastBytes = 64 * kMiB;
/// MemAvailable: the memory that can be had without swapping.
std::uint64_t free_memory_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string word; meminfo >> word;) {
    std::uint64_t kib = 0;
    if (word == "MemAvailable:" && meminfo >> kib) return kib * kKiB;
  }
  return 0;
}

/// The nearest folder above `path` that exists.
std::filesystem::path existing_part(std::filesystem::path path) {
  std::error_code error;
  path = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(path, error) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return path;
}

/// Segments that are already in `folder` count as free room.
std::uint64_t free_disk_bytes(const std::string& folder) {
  struct statfs now {};
  if (::statfs(existing_part(folder).c_str(), &now) != 0) return 0;
  std::uint64_t bytes =
      std::uint64_t{now.f_bavail} * static_cast<std::uint64_t>(now.f_bsize);
  for (const std::string& path : segment_paths(folder)) {
    bytes += allocated_bytes_of(path);
  }
  return bytes;
}

bool is_in_memory(const std::string& folder) {
  constexpr long kTmpfs = 0x01021994;
  constexpr long kRamfs = 0x858458f6;
  struct statfs now {};
  return ::statfs(existing_part(folder).c_str(), &now) != 0 ||
         now.f_type == kTmpfs || now.f_type == kRamfs;
}

void choose_sizes(CacheOptions& options, const CacheNeeds& needs,
                  const Limits& limits, const Env& env) {
  // Includes partly filled pages.
  const std::uint64_t enough =
      needs.data_bytes * (needs.may_decode ? kUsualGrowth : 1) +
      needs.samples * needs.fields * record_cost(1);
  options.ram_bytes =
      std::min({free_memory_bytes() / 4, limits.memory_bytes / 4, enough});
  const auto folder = user_cache_folder(env);
  if (!folder || is_in_memory(*folder)) return;
  options.disk = *folder + "/records";
  options.disk_limit_bytes =
      std::min(free_disk_bytes(options.disk) / 2, enough);
  if (*options.disk_limit_bytes < std::min(kLeastBytes, enough)) {
    options.disk.clear();
    options.disk_limit_bytes.reset();
  }
}

/// Anyone who can write there could choose what the job trains on.
void leave_untrusted_folder(CacheOptions& options) {
  if (options.disk.empty() ||
      is_trusted_folder(options.disk, "the cache's disk=")) {
    return;
  }
  options.disk.clear();
  options.disk_limit_bytes.reset();
}

Result<void> check_policy(const CacheOptions& options) {
  const CachePolicyKind* kind = find_cache_policy_kind(options.policy);
  if (kind == nullptr) {
    return invalid("the cache's policy \"{}\"; it is one of {}", options.policy,
                   fmt::join(cache_policy_names(), ", "));
  }
  if (kind->has_window && options.window == 0) {
    return invalid(
        "the cache's policy \"{}\" without window=; give the number of reads "
        "that it looks ahead",
        options.policy);
  }
  if (!kind->has_window && options.window != 0) {
    return invalid("window= is of the cache's policy \"{}\", and it is \"{}\"",
                   policies_with(&CachePolicyKind::has_window), options.policy);
  }
  return {};
}

Result<void> check_placement(const CacheOptions& options) {
  if (options.placement == Placement::kAny) return {};
  const auto name = to_string(options.placement);
  if (!has_policy_trait(options.policy, &CachePolicyKind::has_planned)) {
    return invalid(
        "the cache's placement=\"{}\" says what tiers of the policy \"{}\" "
        "hold, and it is \"{}\"; give that policy, or leave placement= out",
        name, policies_with(&CachePolicyKind::has_planned), options.policy);
  }
  if (options.is_shared) {
    return invalid(
        "the cache's placement=\"{}\" goes by the order of one job, and "
        "shared=True by those of all; leave one of them out",
        name);
  }
  return {};
}

}  // namespace

Result<CacheOptions> choose_cache(const CacheOptions& options,
                                  const CacheNeeds& needs, const Limits& limits,
                                  const Env& env) {
  CacheOptions chosen = options;
  LEAT_TRY_VOID(check_policy(chosen));
  LEAT_TRY_VOID(check_placement(chosen));
  if (chosen.is_auto) {
    choose_sizes(chosen, needs, limits, env);
    leave_untrusted_folder(chosen);
    return chosen;
  }
  if (!chosen.peers.empty() && chosen.peer_patience <= Nanoseconds(0)) {
    return invalid(
        "peer_patience= of 0 gives every server up before it can answer; give "
        "it a time, such as \"100ms\"");
  }
  if (chosen.peer_secret.empty()) {
    chosen.peer_secret = value_of(env, "LEAT_PEER_SECRET").value_or("");
  }
  if (chosen.is_shared && chosen.ram_bytes == 0 && chosen.disk.empty()) {
    return invalid("shared=True shares ram= and disk=; give one of them");
  }
  if (chosen.disk.empty() && chosen.disk_limit_bytes) {
    return invalid("disk_limit= of a cache without disk=; name its folder");
  }
  if (chosen.disk_limit_bytes == std::uint64_t{0}) {
    return invalid(
        "disk_limit= of 0 keeps nothing; give it bytes, or leave disk= out");
  }
  if (chosen.ram_bytes == 0 && chosen.disk.empty() && chosen.peers.empty()) {
    return invalid(
        "a cache of nothing; give ram=, such as \"8GiB\", disk= or peers=");
  }
  if (!chosen.disk.empty() && !chosen.disk_limit_bytes) {
    chosen.disk_limit_bytes = free_disk_bytes(chosen.disk) / 2;
  }
  leave_untrusted_folder(chosen);
  return chosen;
}

std::vector<std::string> doubts_about(const CacheOptions& options,
                                      const Limits& limits) {
  std::vector<std::string> doubts;
  if (!options.peers.empty() && options.peer_secret.empty()) {
    doubts.emplace_back(
        "the cache's peers= are used without a secret of the job: whoever "
        "reaches these servers can give it wrong bytes; set LEAT_PEER_SECRET "
        "to the same text in all its processes, or start "
        "torch.distributed before the loader, which spreads one");
  }
  if (options.ram_bytes > limits.memory_bytes) {
    doubts.push_back(fmt::format(
        "the cache's ram= of {} is more than the {} of memory that this "
        "process "
        "may have: a dataset that fills it ends the job; give less, or disk=",
        format_bytes(options.ram_bytes), format_bytes(limits.memory_bytes)));
  }
  if (options.disk.empty() || !options.disk_limit_bytes) return doubts;
  const std::uint64_t free_bytes = free_disk_bytes(options.disk);
  if (*options.disk_limit_bytes > free_bytes) {
    doubts.push_back(fmt::format(
        "the cache's disk_limit= of {} is more than the {} that {} has for it: "
        "once that is full, nothing more is kept; give less, or leave it out "
        "for half of what is free",
        format_bytes(*options.disk_limit_bytes), format_bytes(free_bytes),
        options.disk));
  }
  return doubts;
}

std::string describe(const CacheOptions& options) {
  std::string text;
  if (options.ram_bytes != 0) {
    text = format_bytes(options.ram_bytes) + " of RAM";
  }
  if (!options.disk.empty()) {
    text += fmt::format("{}{} in {}", text.empty() ? "" : " and ",
                        format_bytes(*options.disk_limit_bytes), options.disk);
  }
  if (!options.peers.empty()) {
    text +=
        fmt::format("{}{} peer{}", text.empty() ? "" : " and ",
                    options.peers.size(), options.peers.size() == 1 ? "" : "s");
  }
  return text.empty() ? "nothing: too little is free" : text;
}

}  // namespace leat
