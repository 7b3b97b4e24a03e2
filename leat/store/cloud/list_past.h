// Listings that come page after page, of services that may begin anywhere.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

/// Lists page after page with `list_page`, and leaves out what comes before the
/// start, until a page has something. `url`: what is listed, for messages.
///
/// Errors: as `list_page`;
///   kCorrupt  the list does not advance: a page leads to itself, or more than
///             1,000 in a row come empty from the service
template <class ListOne>
Result<ListPage> list_past(const ListRequest& request, std::string_view url,
                           const ListOne& list_page) {
  // Services send a few empty pages where much was deleted.
  constexpr int kMostEmptyPages = 1000;
  ListRequest next = request;
  for (int empty_pages = 0;;) {
    LEAT_TRY(ListPage page, list_page(next));
    const auto has_nothing = [&page] {
      return page.objects.empty() && page.common_prefixes.empty();
    };
    empty_pages = has_nothing() ? empty_pages + 1 : 0;
    std::erase_if(page.objects, [&request](const ObjectInfo& object) {
      return object.key <= request.start_after;
    });
    if (page.resume.empty()) return page;
    const bool is_same = page.resume == next.resume;
    if (is_same || empty_pages > kMostEmptyPages) {
      return corrupt(
          "listing {}: the list does not advance: {}; check the endpoint URL",
          url,
          is_same
              ? "a page leads to itself"
              : "1,000 pages in a row hold nothing and say that there is more");
    }
    if (!has_nothing()) return page;
    next.resume = std::move(page.resume);
  }
}

}  // namespace leat
