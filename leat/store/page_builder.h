// One page of a listing, built from keys in byte order.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "leat/store/store.h"

namespace leat {

/// The smallest string above every string that begins with `prefix`; empty if
/// there is none.
std::string after_prefix(std::string_view prefix);

/// Applies the prefix, start, folding and page size of a ListRequest, so that
/// every driver lists alike.
///
///     PageBuilder page(request, 1000);
///     while (auto* object = first_not_before(page.from())) {
///       if (page.offer(object->key) == PageBuilder::Verdict::kFull) break;
///       ...
///     }
///     return std::move(page).finish();
///
/// `ListPage::resume` is where the next page begins: from() at the end of this
/// one. Threads: one at a time.
class PageBuilder {
 public:
  enum class Verdict {
    kTake,  ///< An object for this page: add() it.
    kFold,  ///< Became a common prefix, or was part of one.
    kSkip,  ///< Before from(), or not under the prefix.
    kFull,  ///< Belongs to a later page; stop.
  };

  PageBuilder(const ListRequest& request, std::size_t most_entries);

  /// Decides about the object with this key. REQUIRES: keys come in byte order.
  Verdict offer(std::string_view key);
  void add(ObjectInfo object);

  /// No key before this one is needed; never decreases.
  const std::string& from() const { return from_; }
  /// True if no further key is needed.
  bool is_past_the_end() const { return is_past_the_end_; }
  const std::string& prefix() const { return prefix_; }

  ListPage finish() &&;

 private:
  const std::string prefix_;
  const std::string delimiter_;
  const std::size_t most_entries_;
  std::string from_;
  bool is_past_the_end_ = false;
  std::size_t entries_ = 0;
  ListPage page_;
};

}  // namespace leat
