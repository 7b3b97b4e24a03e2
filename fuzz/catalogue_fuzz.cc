// Opens any bytes as a catalogue and reads all of it. The checksums are
// corrected first, so that the code behind them is reached.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "leat/base/hash.h"
#include "leat/dataset/catalogue.h"
#include "leat/dataset/catalogue_format.h"

namespace {

using leat::catalogue_format::Header;
using leat::catalogue_format::SectionEntry;

void mend_checksums(std::span<std::byte> file) {
  if (file.size() < sizeof(Header)) return;
  Header header;
  std::memcpy(&header, file.data(), sizeof(header));
  header.magic = leat::catalogue_format::kMagic;
  header.version = leat::catalogue_format::kVersion;
  header.file_bytes = file.size();
  const std::uint64_t rows =
      (file.size() - sizeof(Header)) / sizeof(SectionEntry);
  if (header.sections > rows) header.sections = header.sections % (rows + 1);
  for (std::uint32_t i = 0; i < header.sections; ++i) {
    std::byte* const row =
        file.data() + sizeof(Header) + i * sizeof(SectionEntry);
    SectionEntry entry;
    std::memcpy(&entry, row, sizeof(entry));
    if (entry.offset <= file.size() &&
        entry.length <= file.size() - entry.offset) {
      entry.crc = leat::crc32c(file.subspan(entry.offset, entry.length));
      std::memcpy(row, &entry, sizeof(entry));
    }
  }
  std::memcpy(file.data(), &header, sizeof(header));
  header.crc = leat::crc32c(
      file.subspan(sizeof(Header), header.sections * sizeof(SectionEntry)),
      leat::crc32c(file.first(leat::catalogue_format::kHeaderCrcOffset)));
  std::memcpy(file.data(), &header, sizeof(header));
}

/// Touches every byte that an accessor gives out, so that the sanitizer sees
/// it.
class Toucher {
 public:
  void touch(std::string_view text) {
    for (const char c : text) sum_ = sum_ + static_cast<unsigned char>(c);
  }
  void touch(std::uint64_t number) { sum_ = sum_ + number; }

 private:
  volatile std::uint64_t sum_ = 0;
};

void read_all(const leat::Catalogue& catalogue) {
  Toucher toucher;
  for (std::uint32_t i = 0; i < catalogue.objects(); ++i) {
    const leat::ObjectView object = catalogue.object({i});
    toucher.touch(object.key);
    toucher.touch(object.etag);
  }
  for (leat::SampleId id; id.value < catalogue.samples(); ++id.value) {
    toucher.touch(catalogue.key(id));
    for (std::size_t field = 0; field < catalogue.fields().size(); ++field) {
      switch (catalogue.fields()[field].kind) {
        case leat::FieldKind::kBytes: {
          const leat::ByteRange range = catalogue.range(field, id);
          if (!range.is_missing()) {
            toucher.touch(catalogue.object(range.object).size_bytes);
          }
          break;
        }
        case leat::FieldKind::kInt64:
          toucher.touch(static_cast<std::uint64_t>(catalogue.int64(field, id)));
          break;
        case leat::FieldKind::kFloat64:
          toucher.touch(catalogue.float64(field, id) > 0 ? 1u : 0u);
          break;
        case leat::FieldKind::kString:
          toucher.touch(catalogue.string(field, id));
          break;
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  std::vector<std::byte> file(size);  // Exactly as large: nothing to overrun.
  if (size != 0) std::memcpy(file.data(), data, size);
  mend_checksums(file);
  for (const auto checks :
       {leat::CatalogueChecks::kAll, leat::CatalogueChecks::kStructure}) {
    const auto catalogue = leat::Catalogue::open(file, nullptr, checks);
    if (catalogue) read_all(*catalogue);
  }
  return 0;
}
