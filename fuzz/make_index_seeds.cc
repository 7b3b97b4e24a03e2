// make_index_seeds FOLDER: writes FOLDER/{tar,tfrecord,feature}/* and
// FOLDER/{catalogue,inventory,shard_index}/*.
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "leat/base/buffer.h"
#include "leat/codec/testing/tar_builder.h"
#include "leat/codec/testing/tfrecord_builder.h"
#include "leat/dataset/catalogue_writer.h"

namespace {

void put(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string rich_archive() {
  leat::testing::TarBuilder tar;
  tar.add_pax("size", "2", 'g').add_pax("path", "a/long.jpg");
  tar.add_header({.name = "short"}).add_body("ab");
  tar.add_extended('L', std::string(200, 'l') + '\0').add("x", "12");
  tar.add_header({.name = "d/", .type = '5'}).add("./b.cls", "13");
  return tar.finish();
}

std::string rich_tfrecord() {
  using namespace leat::testing;  // NOLINT: the builders of messages.
  const std::string first = ExampleBuilder()
                                .add("image/encoded", bytes_feature({"jpeg"}))
                                .add("words", bytes_feature({"a", ""}))
                                .add("label", int64_feature({300, -1}))
                                .add("box", float_feature({0.5F, 1}))
                                .add("none", "")
                                .finish();
  return tfrecord(first) + tfrecord("") + tfrecord(first);
}

leat::Buffer rich_catalogue(leat::EtagKind etags) {
  leat::CatalogueWriter writer(leat::Layout::kShards, etags);
  writer.set_classes({"cat", "dog"});
  writer.add_field({"jpg", leat::FieldKind::kBytes});
  writer.add_field({"label", leat::FieldKind::kInt64});
  writer.add_field({"weight", leat::FieldKind::kFloat64});
  writer.add_field({"text", leat::FieldKind::kString});
  const leat::ObjectIndex shard =
      writer.add_object({.key = "0.tar", .etag = "\"1\"", .size_bytes = 4096});
  for (int i = 0; i < 3; ++i) {
    writer.add_sample("sample" + std::to_string(i));
    writer.set_int64(1, i * 1000);
    writer.set_float64(2, i / 3.0);
    writer.set_string(3, std::string(i, 't'));
  }
  writer.set_range(0, {shard, 512, 100});
  return *std::move(writer).finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  put(folder / "tar" / "rich", rich_archive());
  put(folder / "tar" / "plain",
      leat::testing::TarBuilder().add("a.jpg", "1").add("a.cls", "2").finish());
  put(folder / "tfrecord" / "rich", rich_tfrecord());
  put(folder / "tfrecord" / "other", leat::testing::tfrecord("a text"));
  put(folder / "feature" / "whole", leat::testing::int64_feature({0, 300, -1}));
  put(folder / "feature" / "real", leat::testing::float_feature({0, 1.5F}));
  put(folder / "shard_index" / "members",
      "v1.2 2\njpg 512 5 a/1.jpg seg.PNG 1536 600 a/1.seg.PNG\ncls 3072 0 "
      "2.cls\n");
  put(folder / "shard_index" / "list",
      R"({"wids_version": 1, "shardlist": [{"url": "x/0.tar", "nsamples": 3, "filesize": 10240}]})");
  put(folder / "inventory" / "rows", "\"a+b%20c\",\"12\",\"e\"\r\nx,0,\n");
  put(folder / "inventory" / "manifest",
      R"({"sourceBucket": "b", "fileFormat": "CSV", "fileSchema": "Key, Size",
          "files": [{"key": "x/1.csv.gz", "size": 7}]})");
  put(folder / "catalogue" / "rich",
      leat::as_text(rich_catalogue(leat::EtagKind::kHttp).span()));
  put(folder / "catalogue" / "untagged",
      leat::as_text(rich_catalogue(leat::EtagKind::kNone).span()));
  return 0;
}
