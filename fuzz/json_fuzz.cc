// Any document through the programs of ParseJson, at several paths. The result
// must fit its type and the bound that memory was reserved by.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "leat/pipeline/program/program.h"
#include "leat/pipeline/program/value.h"

namespace {

std::vector<leat::OutputField> programs() {
  std::vector<leat::OutputField> all;
  for (const char* op :
       {"parse_json", "parse_json:a.b", "parse_json:a[1]:dtype=float32",
        "parse_json:[0][0]:dtype=str", "parse_json:a:dtype=int8:ragged=true",
        "parse_json:a:dtype=bool"}) {
    auto outputs = leat::compile_ops(*leat::parse_ops(op), {{"data", {}}});
    all.push_back((*outputs)[0]);
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const std::vector<leat::OutputField> fields = programs();
  const std::unique_ptr<std::byte[]> document(new std::byte[size]);
  if (size != 0) std::memcpy(document.get(), data, size);
  const leat::ScratchRef scratch = leat::make_scratch();
  for (const leat::OutputField& field : fields) {
    leat::RunNotes notes;
    const auto value = field.value_program->run(
        std::span<const std::byte>{document.get(), size}, {}, *scratch, notes);
    if (!value) continue;
    std::size_t bytes = 0;
    if (const auto* text = std::get_if<std::string>(&*value)) {
      bytes = text->size();
    } else {
      const auto& array = std::get<leat::ArrayValue>(*value);
      bytes = array.bytes.size();
      if (bytes != array.spec.size_bytes()) std::abort();
    }
    if (bytes > field.value_program->most_bytes(size)) std::abort();
  }
  return 0;
}
