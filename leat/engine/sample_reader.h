// Reads single samples of a dataset, to look at them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "leat/base/buffer.h"
#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/engine/dataset.h"

namespace leat {

/// Reads single samples, to look at them.
///
/// Threads: any.
class SampleReader {
 public:
  /// Sends no request. Errors: as open_store().
  static Result<std::unique_ptr<SampleReader>> open(Dataset dataset,
                                                    const Env& env);

  /// Reads the bytes of a field. Blocks.
  ///
  /// REQUIRES: sample and field are of the dataset, and the field is kBytes.
  /// Errors: as Store::read; kNotFound if the sample has no such field
  Result<Buffer> read(std::size_t field, SampleId sample, std::stop_token stop);

  /// Reads a part of a field's bytes. Blocks. Errors: as read();
  /// kInvalidArgument if it lies outside.
  Result<Buffer> read_part(std::size_t field, SampleId sample,
                           std::uint64_t offset, std::uint64_t length_bytes,
                           std::stop_token stop);

  /// The ETag of the object that holds a field's bytes; empty if unknown.
  std::string etag(std::size_t field, SampleId sample) const;

 private:
  SampleReader(Dataset dataset, OpenedStore store);

  const Dataset dataset_;
  const OpenedStore store_;
  const bool checks_etags_;
};

}  // namespace leat
