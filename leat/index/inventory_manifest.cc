#include "leat/index/inventory_manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "leat/base/errors.h"

namespace leat {
namespace {

using nlohmann::json;

Error damaged(std::string_view why) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("no manifest of an S3 Inventory: {}", why));
}

std::optional<std::string> text_in(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

/// "Bucket, Key, Size, ETag": the names of columns.
Result<InventoryColumns> read_schema(std::string_view schema) {
  InventoryColumns columns;
  std::optional<std::size_t> key;
  std::optional<std::size_t> size;
  while (!schema.empty()) {
    const std::size_t comma = std::min(schema.find(','), schema.size());
    std::string_view name = schema.substr(0, comma);
    schema.remove_prefix(std::min(comma + 1, schema.size()));
    while (name.starts_with(' ')) name.remove_prefix(1);
    const std::size_t at = columns.count++;
    if (name == "Key") key = at;
    if (name == "Size") size = at;
    if (name == "ETag") columns.etag = at;
    if (name == "IsLatest") columns.is_latest = at;
    if (name == "IsDeleteMarker") columns.is_delete_marker = at;
  }
  if (!key) return damaged("its \"fileSchema\" has no Key");
  if (!size) {
    return invalid(
        "the inventory has no sizes: add Size to the fields of its "
        "configuration, and ETag so that changes are noticed");
  }
  columns.key = *key;
  columns.size = *size;
  return columns;
}

}  // namespace

Result<InventoryManifest> parse_inventory_manifest(std::string_view text) {
  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return damaged("it is no JSON object");
  const auto format = text_in(parsed, "fileFormat");
  const auto schema = text_in(parsed, "fileSchema");
  const auto bucket = text_in(parsed, "sourceBucket");
  const auto files = parsed.find("files");
  if (!format || !schema || !bucket || files == parsed.end() ||
      !files->is_array()) {
    return damaged(
        "\"fileFormat\", \"fileSchema\", \"sourceBucket\" or \"files\" is "
        "missing");
  }
  if (*format != "CSV") {
    return invalid(
        "the inventory is in {}, and only CSV is read: set its output format "
        "to CSV",
        format->substr(0, 20));
  }
  InventoryManifest manifest{
      .source_bucket = *bucket, .columns = {}, .files = {}};
  LEAT_TRY(manifest.columns, read_schema(*schema));
  for (const json& file : *files) {
    const auto key = file.is_object() ? text_in(file, "key") : std::nullopt;
    if (!key || key->empty() || !file.contains("size") ||
        !file["size"].is_number_unsigned()) {
      return damaged("a file without \"key\" or \"size\"");
    }
    manifest.files.push_back({*key, file["size"].get<std::uint64_t>()});
  }
  return manifest;
}

}  // namespace leat
