// Any document through the reader of rows, at several paths. It takes no memory
// beyond its bound, and each list that it finds has as many rows as a document
// of that size can hold.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "leat/codec/json/json_rows.h"

namespace {

std::vector<leat::JsonRowsPath> paths() {
  std::vector<leat::JsonRowsPath> all;
  for (const char* path : {"boxes", "a[*].bbox", "[*].a.b", "a.b[0]", ""}) {
    all.push_back(*leat::parse_json_rows_path(path));
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const std::vector<leat::JsonRowsPath> all = paths();
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  if (size != 0) std::memcpy(copy.get(), data, size);
  const std::span<const std::byte> document(copy.get(), size);
  for (const leat::JsonRowsPath& path : all) {
    const auto found = leat::find_json_rows(document, {&path, 1});
    if (!found) continue;
    if (found->size() != 1) std::abort();
    std::size_t items = 0;
    for (const leat::JsonRow& row : (*found)[0]) items += 1 + row.size();
    // A row or a number takes one byte at least, a number alone is both.
    if (items > 2 * size) std::abort();
  }
  // Together, too: what one path finds must not touch another's.
  (void)leat::find_json_rows(document, all);
  // The bytes as a path: most are none.
  (void)leat::parse_json_rows_path(
      {reinterpret_cast<const char*>(copy.get()), size});
  return 0;
}
