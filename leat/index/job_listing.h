// Lets the nodes of a job use one listing of a place.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "leat/base/buffer.h"
#include "leat/base/result.h"
#include "leat/index/open_catalogue.h"

namespace leat {

/// A catalogue that a node of the job has told the others of.
struct PostedCatalogue {
  std::string hash;  ///< XXH3-128 of its bytes, hexadecimal.
  std::uint64_t size_bytes = 0;
  std::chrono::sys_seconds listed_at{};
};

/// The result of asking who lists a place.
struct ListingTurn {
  enum class Who : std::uint8_t {
    kThis,    ///< This process, for all nodes: it posts what it finds.
    kOther,   ///< Another one has; `posted` says what.
    kNobody,  ///< Nobody has for all: each node lists for itself.
  };
  Who who = Who::kNobody;
  PostedCatalogue posted;
};

/// The place where the processes of a job tell each other what they listed.
///
/// Threads: any method, from any thread. An implementation that loses touch
/// with the job answers kNobody.
class ListingBoard {
 public:
  virtual ~ListingBoard() = default;

  /// Begins to open a place, and gives this opening's name: the n-th opening of
  /// a place has one name in all processes.
  virtual std::string begin(std::string_view place) = 0;
  /// Blocks while another process lists for this opening.
  ///
  /// Errors: kCancelled
  virtual Result<ListingTurn> take_turn(const std::string& opening,
                                        const std::stop_token& stop) = 0;
  /// The bytes of a catalogue that was posted. Blocks.
  ///
  /// Errors: any; the caller lists for itself then
  virtual Result<Buffer> fetch(const std::string& opening) = 0;
  /// Ends this process's turn.
  virtual void post(const std::string& opening, const PostedCatalogue& posted,
                    std::span<const std::byte> bytes) = 0;
  /// Ends this process's turn without a catalogue.
  virtual void give_up(const std::string& opening) = 0;
};

/// One opening of a place by this process. Asks the board at most once.
///
/// Threads: one at a time.
class JobListing {
 public:
  /// Without a board, or for a place that is another one on each node, every
  /// node lists.
  JobListing(ListingBoard* board, const Store& store, std::string_view place);
  ~JobListing();
  JobListing(const JobListing&) = delete;
  JobListing& operator=(const JobListing&) = delete;

  /// The catalogue that another node has listed, kept at `path` now; nullopt if
  /// this process has to find or make it. Blocks.
  ///
  /// Errors: kCancelled; kPermissionDenied if the store does not let this user
  /// read; kCorrupt
  Result<std::optional<OpenedCatalogue>> take(
      Store& store, std::string_view prefix,
      const std::optional<std::string>& path, const std::stop_token& stop);

  /// Tells the other nodes, if they wait for this process.
  void give(const OpenedCatalogue& opened);

 private:
  Result<std::optional<OpenedCatalogue>> receive(
      const PostedCatalogue& posted, const std::optional<std::string>& path);

  ListingBoard* board_;  ///< Null: every node lists.
  std::string opening_;
  bool has_asked_ = false;
  bool is_turn_ = false;
};

}  // namespace leat
