#include "leat/profiler/scratch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string_view>
#include <utility>

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

std::vector<Path> mounts_below(const Path& folder) {
  std::vector<Path> mounts;
  std::ifstream table("/proc/self/mountinfo");
  std::string line;
  while (std::getline(table, line)) {
    std::size_t begin = 0;  // The fifth field: where it is mounted.
    for (int field = 0; field < 4; ++field) begin = line.find(' ', begin) + 1;
    const Path mount = without_escapes(
        std::string_view(line).substr(begin, line.find(' ', begin) - begin));
    const bool is_new = std::ranges::none_of(
        mounts, [&](const Path& m) { return lies_below(mount, m); });
    if (lies_below(mount, folder) && is_new) mounts.push_back(mount);
  }
  return mounts;
}

std::string script_for(std::span<const Path> folders, const Path& run_folder) {
  const Path place = run_folder / "scratch";
  std::string script = fmt::format(
      "set -e; here=$PWD; s={}; mkdir -p \"$s\"; mount -t tmpfs tmpfs \"$s\"; ",
      shell_word(place.string()));
  std::size_t kept = 0;
  std::size_t number = 0;
  for (const Path& folder : outermost(folders)) {
    const std::vector<Path> mounts = mounts_below(folder);
    const std::size_t first = kept;
    for (const Path& mount : mounts) {
      script +=
          fmt::format("mkdir \"$s/k{0}\"; mount --rbind {1} \"$s/k{0}\"; ",
                      kept++, shell_word(mount.string()));
    }
    script += fmt::format(
        "mkdir \"$s/l{0}\" \"$s/u{0}\" \"$s/w{0}\"; "
        "mount --bind {1} \"$s/l{0}\"; mount -t overlay overlay -o "
        "lowerdir=\"$s/l{0}\",upperdir=\"$s/u{0}\",workdir=\"$s/w{0}\" {1}; ",
        number++, shell_word(folder.string()));
    for (std::size_t i = 0; i < mounts.size(); ++i) {
      script += fmt::format("mount --rbind \"$s/k{}\" {}; ", first + i,
                            shell_word(mounts[i].string()));
    }
  }
  return script + "cd \"$here\"; exec \"$@\"";
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
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{} cannot be covered: it holds the temporary "
                               "folder {}; run from the folder of the project, "
                               "or set TMPDIR",
                               folder.string(), run_folder.string()));
    }
  }
  std::vector<std::string> words =
      scratch_words(folders, run_folder, ::geteuid() == 0);
  words.emplace_back("true");
  const Path log = run_folder / "scratch.log";
  LEAT_TRY(Child child, Child::start(words, log));
  LEAT_TRY(const int status, child.wait(std::chrono::seconds(30), stop));
  if (status == 0) return {};
  std::string why;
  std::getline(std::ifstream(log), why);
  return Error(ErrorCode::kPermissionDenied,
               fmt::format("no scratch file system can be mounted here ({}): "
                           "run as root, or allow user namespaces; or pass "
                           "--no-scratch and the script writes for real",
                           why));
}

}  // namespace leat
