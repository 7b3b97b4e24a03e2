#include "leat/store/layers/joined_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"

namespace leat {

JoinedStore::JoinedStore(std::vector<Part> parts) : parts_(std::move(parts)) {
  LEAT_CHECK(!parts_.empty());
}

Result<JoinedStore::Place> JoinedStore::place_of(std::string_view key) const {
  std::size_t part = 0;
  const char* const last = key.data() + key.size();
  const auto [end, failed] = std::from_chars(key.data(), last, part);
  if (failed != std::errc() || end == last || *end != '/' ||
      part >= parts_.size()) {
    return not_found("no part of the joined data has '{}'", key);
  }
  const std::string_view rest =
      key.substr(static_cast<std::size_t>(end - key.data()) + 1);
  const Part& found = parts_[part];
  return Place{.store = found.store.get(),
               .key = found.prefix.empty()
                          ? std::string(rest)
                          : fmt::format("{}/{}", found.prefix, rest)};
}

void JoinedStore::read(ReadRequest request, std::stop_token stop,
                       ReadDone done) {
  Result<Place> place = place_of(request.object.key);
  if (!place) return done(std::move(place).error());
  request.object.key = std::move(place->key);
  place->store->read(std::move(request), std::move(stop), std::move(done));
}

Result<ListPage> JoinedStore::list(const ListRequest& /*request*/,
                                   std::stop_token /*stop*/) {
  return invalid("joined data cannot be listed; list its parts");
}

Result<ObjectInfo> JoinedStore::write(std::string_view /*key*/,
                                      std::span<const std::byte> /*bytes*/,
                                      std::stop_token /*stop*/) {
  return invalid("joined data cannot be written; write to its parts");
}

Result<ObjectInfo> JoinedStore::stat(std::string_view key,
                                     std::stop_token stop) {
  LEAT_TRY(const Place place, place_of(key));
  LEAT_TRY(ObjectInfo info, place.store->stat(place.key, std::move(stop)));
  info.key = key;
  return info;
}

StoreTraits JoinedStore::traits() const {
  StoreTraits traits{.can_list = false, .can_write = false};
  for (const Part& part : parts_) {
    const StoreTraits its = part.store->traits();
    traits.best_read_bytes =
        std::max(traits.best_read_bytes, its.best_read_bytes);
    traits.has_etags &= its.has_etags;
  }
  return traits;
}

std::string JoinedStore::url_of(std::string_view key) const {
  const Result<Place> place = place_of(key);
  if (place) return place->store->url_of(place->key);
  return parts_.front().store->url_of(parts_.front().prefix);
}

std::string JoinedStore::name_of(std::string_view key) const {
  const Result<Place> place = place_of(key);
  return place ? place->store->name_of(place->key) : url_of(key);
}

bool JoinedStore::names_version(std::string_view key) const {
  const Result<Place> place = place_of(key);
  return place && place->store->names_version(place->key);
}

}  // namespace leat
