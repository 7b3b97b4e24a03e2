// Any bytes over the agent's socket: they are lines or an error, and any line
// is a message that can be said again, or an error that says why.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "leat/agent/wire/messages.h"
#include "leat/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  leat::LineReader reader;
  if (!reader.add(bytes)) return 0;
  while (const auto line = reader.next()) {
    if (const auto read = leat::parse_loader_line(*line)) {
      LEAT_CHECK(read->registration.has_value() + read->rates.has_value() +
                     read->trace.has_value() ==
                 1);
      if (read->trace) {
        const std::string again = leat::line_of(*read->trace);
        LEAT_CHECK(again.size() <= leat::kMostLineBytes);
        LEAT_CHECK(leat::parse_loader_line(again)->trace == read->trace);
      }
      if (read->rates) (void)leat::line_of(*read->rates);
      if (read->registration) {
        LEAT_CHECK(leat::line_of(*read->registration).size() <=
                   leat::kMostLineBytes);
      }
    }
    if (const auto read = leat::parse_agent_line(*line)) {
      if (read->share) (void)leat::line_of(*read->share);
    }
  }
  return 0;
}
