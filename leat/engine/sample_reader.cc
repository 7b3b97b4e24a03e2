#include "leat/engine/sample_reader.h"

#include <string>
#include <utility>

#include "leat/base/errors.h"
#include "leat/index/build.h"
#include "leat/pipeline/proven_bytes.h"

namespace leat {
namespace {

/// A sample is looked at one field at a time, large ones in parts.
constexpr StoreShare kReaderShare = {.max_in_flight = 8, .io_threads = 1};

}  // namespace

Result<std::unique_ptr<SampleReader>> SampleReader::open(Dataset dataset,
                                                         const Env& env) {
  LEAT_TRY(OpenedStore store,
           open_store_of(dataset, kReaderShare, env, nullptr));
  return std::unique_ptr<SampleReader>(
      new SampleReader(std::move(dataset), std::move(store)));
}

SampleReader::SampleReader(Dataset dataset, OpenedStore store)
    : dataset_(std::move(dataset)),
      store_(std::move(store)),
      checks_etags_(etags_apply(*dataset_.catalogue, *store_.store)) {}

Result<Buffer> SampleReader::read(std::size_t field, SampleId sample,
                                  std::stop_token stop) {
  const Catalogue& catalogue = *dataset_.catalogue;
  const ByteRange range = catalogue.range(field, sample);
  if (range.is_missing()) {
    return not_found("sample {} ({}) has no field \"{}\"", sample.value,
                     catalogue.key(sample), catalogue.fields()[field].name);
  }
  LEAT_TRY(Buffer bytes, read_part(field, sample, 0, range.length_bytes, stop));
  if (are_right(catalogue, field, sample, bytes.span())) return bytes;
  const ObjectView view = catalogue.object(range.object);
  return read_proven(*store_.store,
                     {.key = key_in_store(store_.prefix, view.key),
                      .etag = etag(field, sample),
                      .size_bytes = view.size_bytes},
                     catalogue, field, sample, stop);
}

Result<Buffer> SampleReader::read_part(std::size_t field, SampleId sample,
                                       std::uint64_t offset,
                                       std::uint64_t length_bytes,
                                       std::stop_token stop) {
  const Catalogue& catalogue = *dataset_.catalogue;
  const ByteRange range = catalogue.range(field, sample);
  if (range.is_missing() || offset > range.length_bytes ||
      length_bytes > range.length_bytes - offset) {
    return invalid("sample {} ({}) has no bytes [{}, {})", sample.value,
                   catalogue.key(sample), offset, offset + length_bytes);
  }
  Buffer bytes(length_bytes);
  if (length_bytes == 0) return bytes;
  const ObjectView view = catalogue.object(range.object);
  ReadRequest request;
  request.object = {.key = key_in_store(store_.prefix, view.key),
                    .etag = etag(field, sample),
                    .size_bytes = view.size_bytes};
  request.offset = range.offset + offset;
  request.into = bytes.span();
  LEAT_TRY_VOID(read_range(*store_.store, std::move(request), std::move(stop)));
  return bytes;
}

std::string SampleReader::etag(std::size_t field, SampleId sample) const {
  const ByteRange range = dataset_.catalogue->range(field, sample);
  if (!checks_etags_ || range.is_missing()) return "";
  return std::string(dataset_.catalogue->object(range.object).etag);
}

}  // namespace leat
