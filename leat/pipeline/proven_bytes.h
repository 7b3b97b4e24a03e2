// Compares the bytes of samples with the checksums of a catalogue.
#pragma once
#include <cstddef>
#include <span>
#include <stop_token>
#include <string_view>

#include "leat/base/buffer.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/store/store.h"

namespace leat {

/// False if the catalogue has a checksum of the value, and `bytes` have another
/// one.
bool are_right(const Catalogue& catalogue, std::size_t field, SampleId sample,
               std::span<const std::byte> bytes);

/// The value that was not right, read again past all caches. Blocks, also while
/// the store is retried.
///
/// Errors: kCorrupt if it is wrong each time; as Store::read
Result<Buffer> read_proven(Store& store, ObjectId object,
                           const Catalogue& catalogue, std::size_t field,
                           SampleId sample, const std::stop_token& stop);

}  // namespace leat
