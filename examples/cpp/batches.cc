// Reads an epoch of any dataset and prints what its batches look like:
//
//     leat_example_batches s3://bucket/train 256
//     leat_example_batches s3://bucket/train 256 decode_image,resize:224/224
//
// In a project of your own: find_package(leat) and link leat::leat.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "leat/leat.h"

namespace {

using leat::ArrayKind;
using leat::BatchReader;
using leat::FieldArray;
using leat::Result;

std::string describe(const FieldArray& field) {
  switch (field.kind) {
    case ArrayKind::kDense:
      return fmt::format("{} {} ({})", field.name, to_string(field.dtype),
                         fmt::join(field.shape, ", "));
    case ArrayKind::kRagged:
      return fmt::format("{} {} ragged ({})", field.name,
                         to_string(field.dtype), fmt::join(field.shape, ", "));
    case ArrayKind::kStrings:
      return fmt::format("{} {} strings", field.name, field.strings.size());
  }
  return field.name;
}

Result<void> print_epoch(const char* url, const leat::ReaderOptions& options) {
  LEAT_TRY(BatchReader reader, BatchReader::open(url, options));

  LEAT_TRY_VOID(reader.begin());
  while (true) {
    LEAT_TRY(const std::optional<leat::Batch> batch, reader.next());
    if (!batch) break;
    std::string line = fmt::format("batch {}:", batch->step);
    for (const FieldArray& field : batch->fields) {
      line += "  " + describe(field);
    }
    fmt::print("{}\n", line);
  }

  const leat::EpochStats stats = reader.stats().back();
  fmt::print("{} samples, {} reads, {} bytes; waited {:.1f} ms of {:.1f} ms\n",
             stats.samples, stats.gets, stats.bytes_read,
             static_cast<double>(stats.wait.count()) / 1e6,
             static_cast<double>(stats.elapsed.count()) / 1e6);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fmt::print(stderr, "usage: {} URL BATCH_SIZE [OPS]\n", argv[0]);
    return 2;
  }
  leat::ReaderOptions options;
  options.batch_size = std::strtoull(argv[2], nullptr, 10);
  if (argc == 4) options.ops = argv[3];
  if (Result<void> done = print_epoch(argv[1], options); !done) {
    fmt::print(stderr, "{}\n", done.error().message());
    return 1;
  }
  return 0;
}
