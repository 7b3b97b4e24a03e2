#include "leat/store/store.h"

#include <utility>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/store/reply_box.h"

namespace leat {

Result<void> check_object_size(const ObjectId& object,
                               std::uint64_t has_bytes) {
  if (!object.size_bytes || *object.size_bytes == has_bytes) return {};
  return corrupt(
      "the object changed since it was indexed, or a table gives it another "
      "size (it has {} bytes, not {}); index again, or correct the sizes of "
      "the "
      "table",
      has_bytes, *object.size_bytes);
}

Result<void> read_range(Store& store, ReadRequest request,
                        std::stop_token stop) {
  ReplyBox<Result<void>> reply;
  store.read(std::move(request), std::move(stop),
             [&reply](Result<void> result) { reply.put(std::move(result)); });
  return reply.take();
}

Result<Buffer> read_object(Store& store, std::string_view key,
                           std::uint64_t most_bytes, std::stop_token stop) {
  LEAT_TRY(ObjectInfo info, store.stat(key, stop));
  if (info.size_bytes > most_bytes) {
    return exhausted("{} has {}, more than the {} that are read whole",
                     store.url_of(key), format_bytes(info.size_bytes),
                     format_bytes(most_bytes));
  }
  Buffer bytes(info.size_bytes);
  if (bytes.size() == 0) return bytes;
  LEAT_TRY_VOID(read_range(
      store,
      ReadRequest{.object = {.key = std::string(key), .etag = info.etag},
                  .into = bytes.span()},
      std::move(stop)));
  return bytes;
}

}  // namespace leat
