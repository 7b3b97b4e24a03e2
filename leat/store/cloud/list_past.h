// Listings that begin after a key, of services that cannot.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

/// Lists page after page with `list_page`, and leaves out what comes before the
/// start, until a page has something.
///
/// Errors: as `list_page`;
///   kUnavailable  the service gives the same page again and again
template <class ListOne>
Result<ListPage> list_past(const ListRequest& request,
                           const ListOne& list_page) {
  ListRequest next = request;
  for (;;) {
    LEAT_TRY(ListPage page, list_page(next));
    std::erase_if(page.objects, [&request](const ObjectInfo& object) {
      return object.key <= request.start_after;
    });
    const bool has_nothing =
        page.objects.empty() && page.common_prefixes.empty();
    if (!has_nothing || page.resume.empty()) return page;
    if (page.resume == next.resume) {
      return Error(ErrorCode::kUnavailable,
                   "listing '" + request.prefix +
                       "': the server gives the same page again and again");
    }
    next.resume = std::move(page.resume);
  }
}

}  // namespace leat
