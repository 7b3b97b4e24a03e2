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
#include <memory>
#include <string>
#include <utility>

#include "leat/base/env.h"
#include "leat/engine/dataset.h"
#include "leat/engine/loader.h"

namespace {

using leat::ArrayKind;
using leat::FieldArray;
using leat::Loader;
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

Result<void> print_epoch(const std::string& url, leat::LoaderOptions options) {
  const leat::Env env = leat::process_env();
  LEAT_TRY(leat::Dataset dataset, leat::open_dataset(url, {}, {}, env, {}));
  LEAT_TRY(const std::unique_ptr<Loader> loader,
           Loader::open(std::move(dataset), std::move(options), env));

  LEAT_TRY(const Loader::Iteration epoch, loader->begin());
  while (true) {
    LEAT_TRY(Loader::Next next, loader->next(epoch));
    if (next.is_end()) break;
    std::string line = fmt::format("batch {}:", next.batch().step);
    for (const FieldArray& field : next.batch().fields) {
      line += "  " + describe(field);
    }
    fmt::print("{}\n", line);
  }

  const leat::EpochStats stats = loader->stats().back();
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
  leat::LoaderOptions options;
  options.global_batch_size = std::strtoull(argv[2], nullptr, 10);
  options.shuffle = leat::ShuffleChoice::kNone;
  if (argc == 4) {
    Result<std::vector<leat::OpSpec>> ops = leat::parse_ops(argv[3]);
    if (!ops) {
      fmt::print(stderr, "{}\n", ops.error().message());
      return 2;
    }
    options.ops = *std::move(ops);
  }
  if (Result<void> done = print_epoch(argv[1], std::move(options)); !done) {
    fmt::print(stderr, "{}\n", done.error().message());
    return 1;
  }
  return 0;
}
