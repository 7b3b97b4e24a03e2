// A stranger's program: from the installed headers and leat::leat alone. Reads
// the dataset at argv[1], which holds "I am cat" and "I am dog".
#include <leat/leat.h>

#include <cstdio>
#include <string>

namespace {

leat::Result<std::string> texts_of(const char* url) {
  LEAT_TRY(leat::BatchReader reader,
           leat::BatchReader::open(url, {.batch_size = 1}));
  LEAT_TRY_VOID(reader.begin());
  std::string texts;
  while (true) {
    LEAT_TRY(const std::optional<leat::Batch> batch, reader.next());
    if (!batch) break;
    const auto bytes = batch->fields.at(0).values->bytes();
    texts.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::printf("%s: %s\n", batch->fields[0].name.c_str(),
                std::string(to_string(batch->fields[0].dtype)).c_str());
  }
  std::printf("waited for %lld ns\n",
              static_cast<long long>(reader.stats().back().wait.count()));
  return texts;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const leat::Result<std::string> texts = texts_of(argv[1]);
  if (!texts) {
    std::fprintf(stderr, "%s\n", texts.error().message().c_str());
    return 1;
  }
  return *texts == "I am catI am dog" ? 0 : 1;
}
