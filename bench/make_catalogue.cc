// make_catalogue PATH SAMPLES [BYTES]: writes the catalogue of that many
// samples in shards of 10,000, a field of this many bytes and a label each.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "leat/dataset/catalogue_writer.h"
#include "leat/index/catalogue_file.h"

namespace {

constexpr std::uint64_t kSamplesPerShard = 10'000;
constexpr std::uint64_t kUsualBytes = 100'000;

leat::Result<void> make(const char* path, std::uint64_t samples,
                        std::uint64_t bytes_of_each) {
  leat::CatalogueWriter writer(leat::Layout::kShards, leat::EtagKind::kNone);
  const auto bytes = writer.add_field({"jpg", leat::FieldKind::kBytes});
  const auto label = writer.add_field({"cls", leat::FieldKind::kInt64});
  leat::ObjectIndex shard;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t in_shard = i % kSamplesPerShard;
    if (in_shard == 0) {
      const auto key = fmt::format("{:06}.tar", i / kSamplesPerShard);
      shard = writer.add_object(
          {.key = key, .size_bytes = kSamplesPerShard * bytes_of_each});
    }
    writer.add_sample(fmt::format("{:09}", i));
    writer.set_range(bytes, {shard, in_shard * bytes_of_each, bytes_of_each});
    writer.set_int64(label, static_cast<std::int64_t>(i % 1000));
  }
  LEAT_TRY(const leat::Buffer file, std::move(writer).finish());
  return leat::write_catalogue(path, file.span());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const auto made =
      make(argv[1], std::strtoull(argv[2], nullptr, 10),
           argc == 4 ? std::strtoull(argv[3], nullptr, 10) : kUsualBytes);
  if (made) return 0;
  std::fprintf(stderr, "%s\n", made.error().message().c_str());
  return 1;
}
