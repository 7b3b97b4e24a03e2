// Any document as the end of an upload in parts, and as the keys to be deleted.
// An object is made of parts that are there or not at all, and nothing outside
// the bucket is removed.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/bucket_world.h"
#include "leat/base/buffer.h"
#include "leat/bucket/request_body.h"
#include "leat/bucket/write_replies.h"

namespace {

using leat::fuzzing::BucketWorld;
using leat::fuzzing::parsed;
using leat::fuzzing::require;

/// An upload of `b/joined` with parts 1 and 2.
std::string begin_upload(leat::BucketParts& parts) {
  const auto id = parts.uploads.create("b", "joined", "");
  require(bool(id));
  for (const int number : {1, 2}) {
    auto draft = parts.folder.begin_object();
    const std::string bytes(std::size_t(number), 'x');
    require(draft && draft->write(leat::as_bytes(bytes)));
    require(bool(parts.uploads.put_part({*id, "b", "joined"}, number,
                                        *std::move(draft),
                                        leat::to_hex(leat::md5(bytes)))));
  }
  return *id;
}

void complete(BucketWorld& world, const std::string& xml) {
  static std::string id = begin_upload(world.parts());
  leat::WriteRequest request;
  request.target = {
      .bucket = "b", .key = "joined", .query = {{"uploadId", id}}};
  const leat::Reply reply =
      leat::complete_upload_reply(world.parts(), request, xml);
  (void)parsed(reply);
  if (reply.status != 200) {
    require(world.parts().uploads.parts({id, "b", "joined"})->size() == 2);
    return;
  }
  const auto joined =
      leat::object_state(*world.parts().folder.object_path("b", "joined"));
  // Part 1 is too small to be followed by another.
  require(joined && (joined->size_bytes == 1 || joined->size_bytes == 2));
  id = begin_upload(world.parts());
}

void remove(BucketWorld& world, const std::string& xml) {
  const leat::S3Target target{.bucket = "b", .key = "", .query = {}};
  const leat::Reply reply =
      leat::delete_objects_reply(world.parts(), target, xml);
  require(reply.status == 200 || reply.status == 400);
  (void)parsed(reply);
  require(!leat::check_bucket(world.parts(), "b"));
  require(!leat::check_bucket(world.parts(), "other"));
  world.put("k");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static BucketWorld world({"k", "../other/k"});
  if (size < 1) return 0;
  const std::string xml(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    complete(world, xml);
  } else {
    remove(world, xml);
  }
  return 0;
}
