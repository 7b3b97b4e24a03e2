// Reads any bytes as the indexes that lie beside shards. Members must lie
// within the shard, one after the other, for any text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "leat/index/member_index.h"
#include "leat/index/shard_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::uint64_t shard_bytes :
       {std::uint64_t{0}, std::uint64_t{10'240}, ~std::uint64_t{0}}) {
    const auto members = leat::parse_member_index(text, shard_bytes);
    if (!members) continue;
    std::uint64_t end = 0;
    for (const leat::Member& member : *members) {
      if (member.offset < end || member.offset > shard_bytes ||
          member.size_bytes > shard_bytes - member.offset ||
          member.name.empty() || member.name.front() == '/') {
        std::abort();
      }
      end = member.offset + member.size_bytes;
    }
  }
  (void)leat::parse_shard_list(text);  // Must return, whatever it says.
  return 0;
}
