#include "leat/profiler/scratch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

#include "leat/base/errors.h"
#include "leat/profiler/child.h"
#include "leat/profiler/shell_word.h"

namespace leat {
namespace {

using Path = std::filesystem::path;

bool lies_below(const Path& path, const Path& folder) {
  const auto [end, unused] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end() && path != folder;
}

/// Without those that lie in another.
std::vector<Path> outermost(std::span<const Path> folders) {
  std::vector<Path> kept;
  kept.reserve(folders.size());
  for (const Path& folder : folders) {
    if (std::ranges::find(kept, folder) == kept.end() &&
        std::ranges::none_of(folders, [&](const Path& other) {
          return lies_below(folder, other);
        })) {
      kept.push_back(folder);
    }
  }
  return kept;
}

/// \040 and the like, as the kernel writes spaces in its table of mounts.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      int byte = 0;
      for (std::size_t d = 1; d <= 3; ++d)
        byte = byte * 8 + (text[i + d] - '0');
      plain.push_back(static_cast<char>(byte));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

/// All file systems mounted below a folder, each after the one that it lies in.
std::vector<Path> mounts_below(const Path& folder) {
  std::set<Path> mounts;
  std::ifstream table("/proc/self/mountinfo");
  std::string line;
  while (std::getline(table, line)) {
    std::size_t begin = 0;  // The fifth field: the mount point.
    for (int field = 0; field < 4; ++field) begin = line.find(' ', begin) + 1;
    const Path mount = without_escapes(
        std::string_view(line).substr(begin, line.find(' ', begin) - begin));
    if (lies_below(mount, folder)) mounts.insert(mount);
  }
  return {mounts.begin(), mounts.end()};
}

/// keep() stores a folder or file under a number before anything covers it;
/// then an overlay takes its place. Some file systems cannot stand under an
/// overlay: those can only be read meanwhile.
constexpr std::string_view kFunctions =
    "keep() { if [ -d \"$1\" ]; then mkdir \"$s/l$2\"; else : >\"$s/l$2\"; fi; "
    "mount --bind \"$1\" \"$s/l$2\"; }; "
    "cover() { mkdir \"$s/u$2\" \"$s/w$2\" && mount -t overlay overlay -o "
    "\"lowerdir=$s/l$2,upperdir=$s/u$2,workdir=$s/w$2\" \"$1\"; }; "
    "cover_or_lock() { [ -d \"$1\" ] && cover \"$@\" 2>/dev/null || "
    "{ mount --bind \"$s/l$2\" \"$1\" && mount -o remount,bind,ro \"$1\"; }; "
    "}; ";

std::string script_for(std::span<const Path> folders, const Path& run_folder) {
  const Path place = run_folder / "scratch";
  std::string script = fmt::format(
      "set -e; here=$PWD; s={}; mkdir -p \"$s\"; mount -t tmpfs tmpfs \"$s\"; ",
      shell_word(place.string()));
  script += kFunctions;
  std::size_t number = 0;
  for (const Path& folder : outermost(folders)) {
    std::vector<Path> covered = mounts_below(folder);
    covered.insert(covered.begin(), folder);
    const std::size_t first = number;
    for (const Path& path : covered) {
      script +=
          fmt::format("keep {} {}; ", shell_word(path.string()), number++);
    }
    for (std::size_t i = 0; i < covered.size(); ++i) {
      script += fmt::format("{} {} {}; ", i == 0 ? "cover" : "cover_or_lock",
                            shell_word(covered[i].string()), first + i);
    }
  }
  return script + "cd \"$here\"; exec \"$@\"";
}

/// In a user's own namespace the kernel does not let a folder be covered apart
/// from the mounts in it.
Result<void> nothing_mounted_in(std::span<const Path> folders) {
  for (const Path& folder : folders) {
    const std::vector<Path> mounts = mounts_below(folder);
    if (mounts.empty()) continue;
    return denied(
        "only root can cover {}, since {} is mounted in it: run as root, or "
        "from a folder, and with a HOME, in which nothing is mounted; or pass "
        "--no-scratch and the script writes for real",
        folder.string(), mounts.front().string());
  }
  return {};
}

}  // namespace

std::vector<std::string> scratch_words(std::span<const Path> folders,
                                       const Path& run_folder, bool is_root) {
  std::vector<std::string> words = {"unshare", "--mount", "--propagation",
                                    "private"};
  if (!is_root) {
    for (const char* word : {"--user", "--map-current-user", "--keep-caps"}) {
      words.emplace_back(word);
    }
  }
  for (const std::string& word :
       {std::string("sh"), std::string("-c"), script_for(folders, run_folder),
        std::string("leat-scratch")}) {
    words.push_back(word);
  }
  return words;
}

Result<void> check_scratch(std::span<const Path> folders,
                           const Path& run_folder,
                           const std::stop_token& stop) {
  for (const Path& folder : folders) {
    if (lies_below(run_folder, folder) || folder == "/") {
      return invalid(
          "{} cannot be covered: it holds the temporary "
          "folder {}; run from the folder of the project, "
          "or set TMPDIR",
          folder.string(), run_folder.string());
    }
  }
  std::vector<std::string> words =
      scratch_words(folders, run_folder, ::geteuid() == 0);
  words.emplace_back("true");
  const Path log = run_folder / "scratch.log";
  LEAT_TRY(Child child, Child::start(words, log));
  LEAT_TRY(const int status, child.wait(std::chrono::seconds(30), stop));
  if (status == 0) return {};
  if (::geteuid() != 0) LEAT_TRY_VOID(nothing_mounted_in(folders));
  std::string why;
  std::getline(std::ifstream(log), why);
  return denied(
      "no scratch file system can be mounted here ({}): run as root, or allow "
      "user namespaces; or pass --no-scratch and the script writes for real",
      why);
}

}  // namespace leat
