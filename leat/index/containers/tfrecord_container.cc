// TFRecord files. An index beside one (DALI's tfrecord2idx) tells where records
// lie, and no features: it is not used.

#include <array>

#include "leat/codec/tfrecord/tfrecord_scanner.h"
#include "leat/index/containers/containers.h"

namespace leat {
namespace {

std::unique_ptr<MemberScanner> scan(std::uint64_t size_bytes) {
  return std::make_unique<TfrecordScanner>(size_bytes);
}

constexpr std::array<std::string_view, 2> kOtherEndings = {".tfrecords",
                                                           ".tfrec"};
constexpr std::array<std::string_view, 3> kCompressed = {
    ".tfrecord.gz", ".tfrecords.gz", ".tfrec.gz"};

}  // namespace

constinit const Container kTfrecordContainer = {.ending = ".tfrecord",
                                                .other_endings = kOtherEndings,
                                                .is_numbered_behind = true,
                                                .scan = scan,
                                                .compressed = kCompressed};

}  // namespace leat
