// Any query of a listing. The answer is a document, its keys are those of the
// bucket that have the prefix, in their order, and page by page they are the
// same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/bucket_world.h"
#include "leat/bucket/key_walk.h"
#include "leat/bucket/list_replies.h"

namespace {

using leat::fuzzing::BucketWorld;
using leat::fuzzing::require;

const std::set<std::string>& keys() {
  static const std::set<std::string> keys = {
      "aa",  "a-b",   "a.x", "a/b",  "a/c/d", "a/c/e",   "a0",
      "b/b", "b/b-b", "b0",  "c&<>", "d d/e", "\xc3\xbc"};
  return keys;
}

std::string text_of(const leat::KeyPage& page) {
  std::string text;
  for (const leat::FoundKey& found : page.found) {
    text += found.key + (found.is_prefix ? "|\n" : "\n");
  }
  return text;
}

void walk(BucketWorld& world, const leat::S3Target& target) {
  leat::KeyQuery query{.prefix = std::string(target.value("prefix")),
                       .delimiter = std::string(target.value("delimiter")),
                       .after = std::string(target.value("start-after"))};
  const std::string path = *world.parts().folder.bucket_path("b");
  const auto whole = leat::walk_keys(path, query, world.parts().folders);
  require(whole && !whole->is_cut);
  for (const leat::FoundKey& found : whole->found) {
    require(found.key.starts_with(query.prefix));
    // Keys of a group that begins before it may come after it.
    require(found.is_prefix ||
            (keys().contains(found.key) && found.key > query.after));
  }
  std::string pages;
  query.most = target.query.size() % 3 + 1;
  for (bool is_cut = true; is_cut;) {
    const auto page = leat::walk_keys(path, query, world.parts().folders);
    require(page && page->found.size() <= query.most);
    pages += text_of(*page);
    is_cut = page->is_cut;
    if (is_cut) query.after = page->found.back().key;
  }
  require(pages == text_of(*whole));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static BucketWorld world(keys());
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto target = leat::parse_target("/b?" + text);
  require(target && target->bucket == "b");
  for (const auto operation :
       {leat::Operation::kListObjects, leat::Operation::kListObjectsV2}) {
    const leat::Reply reply =
        leat::list_objects_reply(world.parts(), *target, operation);
    require(reply.status == 200 || reply.status == 400);
    (void)leat::fuzzing::parsed(reply);
  }
  (void)leat::fuzzing::parsed(leat::list_uploads_reply(world.parts(), *target));
  walk(world, *target);
  return 0;
}
