// The break-even of `leat plan`, as JSON and as text: docs/reference/plan.md.
#pragma once
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "leat/cli/break_even_file.h"
#include "leat/plan/simulator.h"

namespace leat {

/// Sets a way's epochs and lists to those of a simulated job. The job has
/// times.
void take_from(const SimulationReport& report, const SimulationOptions& options,
               Way& way);

/// The cost of each way, which is the cheapest from how many epochs on, and the
/// prices at which the cheapest costs as much as another.
nlohmann::ordered_json break_even_json(
    const std::string& name, std::span<const Way> ways, std::uint64_t epochs,
    std::uint32_t nodes, const Prices& prices, const Billing& billing);

void print_break_even(const nlohmann::ordered_json& told, std::ostream& out);

}  // namespace leat
