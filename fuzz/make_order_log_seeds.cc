// make_order_log_seeds FOLDER: writes FOLDER/order_log/*, payloads of entries.
#include <filesystem>
#include <fstream>
#include <string>

#include "leat/engine/order_log/entries.h"

namespace {

void put(const std::filesystem::path& path, const leat::OrderLogEntry& entry) {
  std::string bytes;
  leat::append_entry(entry, bytes);
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes.substr(leat::kOrderLogFrame);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder =
      std::filesystem::path(argv[1]) / "order_log";
  put(folder / "head", leat::OrderLogHead{.rank = {.rank = 1, .world_size = 4},
                                          .data = "0123456789abcdef",
                                          .shuffle = "full",
                                          .seed = 7,
                                          .global_batch = 8,
                                          .tail = "pad",
                                          .samples = 60});
  put(folder / "shuffled", leat::OrderLogBatch{.starts = true,
                                               .epoch = 1,
                                               .from = 56,
                                               .to = 60,
                                               .ids = {{900}, {17}, {5}, {33}},
                                               .padding = {2, 3},
                                               .substitutes = {1}});
  put(folder / "in_order",
      leat::OrderLogBatch{.to = 3, .ids = {{700}, {701}, {702}}});
  put(folder / "end", leat::OrderLogEnd{.epoch = 1, .at = 60, .samples = 60});
  return 0;
}
