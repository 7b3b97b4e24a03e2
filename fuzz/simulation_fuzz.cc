// The file of `leat plan --simulate`: any bytes are jobs or an error that says
// what is wrong, within bounds that keep a simulation from taking the machine.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "leat/base/check.h"
#include "leat/cli/simulation_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = leat::parse_simulation_file(text, "jobs.toml");
  if (!file) {
    LEAT_CHECK(!file.error().message().empty());
    return 0;
  }
  for (const leat::NamedSimulation& simulation : file->simulations) {
    LEAT_CHECK(simulation.options.samples > 0);
    LEAT_CHECK(simulation.options.global_batch > 0);
  }
  for (const leat::NamedDeli& deli : file->deli) {
    LEAT_CHECK(deli.samples / deli.nodes <=
               (std::uint64_t{1} << 27) / deli.epochs);
  }
  return 0;
}
