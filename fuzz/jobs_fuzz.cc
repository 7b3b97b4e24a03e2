// The file of `leat simulate`: any bytes are jobs or an error that says what is
// wrong, within bounds that keep a simulation from taking the machine.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "leat/base/check.h"
#include "leat/cli/jobs_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto runs = leat::parse_jobs_file(text, "jobs.toml");
  if (!runs) {
    LEAT_CHECK(!runs.error().message().empty());
    return 0;
  }
  for (const leat::NamedSharing& run : *runs) {
    LEAT_CHECK(run.simulation.node.threads >= 1);
    for (const leat::SimulatedJob& job : run.simulation.jobs) {
      LEAT_CHECK(std::isfinite(job.samples) && job.samples > 0);
      LEAT_CHECK(std::isfinite(job.arrives_seconds));
    }
  }
  return 0;
}
