#include "leat/cli/machine_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostAccelerators = 1024;
constexpr std::uint64_t kMostMachines = 4096;

double positive(TomlReader& reader, std::string_view key) {
  const double value = reader.amount(key, 0);
  if (!(value > 0)) reader.refuse(key, "must be there, and more than 0");
  return value;
}

/// Text that is shown on a terminal.
std::string shown(TomlReader& reader, std::string_view key) {
  std::string text = reader.text(key);
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  if (reader.has(key) &&
      (text.empty() || std::ranges::any_of(text, is_control))) {
    reader.refuse(key, "must be some text, on one line");
  }
  return text;
}

Link read_link(TomlReader& reader, const std::string& name) {
  return {.latency_seconds = reader.seconds(name + "_latency", 0.0),
          .bytes_per_second = static_cast<double>(reader.bytes(name, 0))};
}

Result<Machine> read_machine(const toml::table& table, const std::string& where,
                             std::string& as_of) {
  TomlReader reader(table, where);
  Machine machine{
      .name = shown(reader, "name"),
      .accelerator = reader.text("accelerator", ""),
      .accelerators = static_cast<std::uint32_t>(
          reader.number("accelerators", 1, kMostAccelerators, 1)),
      .speed = positive(reader, "speed"),
      .cores = positive(reader, "cores"),
      .memory_bytes = static_cast<double>(reader.bytes("memory", 0)),
      .disk_bytes = static_cast<double>(reader.bytes("disk", 0)),
      .interconnect = read_link(reader, "interconnect"),
      .network = read_link(reader, "network"),
      .dollars_per_hour = reader.amount("dollars_per_hour", 0),
      .most = static_cast<std::uint32_t>(
          reader.number("most", 1, kMostMachines, 1)),
      .measured_step_seconds = std::nullopt};
  if (!reader.has("dollars_per_hour")) {
    reader.refuse("dollars_per_hour", "is missing");
  }
  if (reader.has("measured_step")) {
    machine.measured_step_seconds = reader.seconds("measured_step");
    if (!(*machine.measured_step_seconds > 0)) {
      reader.refuse("measured_step", "must be more than 0");
    }
  }
  as_of = shown(reader, "as_of");
  (void)reader.text("source");  // For people.
  LEAT_TRY_VOID(reader.done());
  return machine;
}

}  // namespace

Result<MachineList> parse_machine_list(std::string_view text,
                                       const std::string& name) {
  LEAT_TRY(const toml::table root, parse_toml(text, name));
  TomlReader reader(root, name);
  const toml::array* machines = reader.tables("machine");
  const toml::table* billing = reader.table("billing");
  LEAT_TRY_VOID(reader.done());
  MachineList list;
  if (billing != nullptr) {
    LEAT_TRY(list.store, read_billing(*billing, name + ", billing"));
  }
  for (std::size_t i = 0; machines != nullptr && i < machines->size(); ++i) {
    const std::string where = fmt::format("{}, machine {}", name, i + 1);
    std::string as_of;
    LEAT_TRY(Machine machine,
             read_machine(*machines->get(i)->as_table(), where, as_of));
    if (std::ranges::find(list.machines, machine.name, &Machine::name) !=
        list.machines.end()) {
      return invalid(
          "{}: there is another \"{}\": give each machine its own name", where,
          machine.name);
    }
    list.machines.push_back(std::move(machine));
    list.as_of.push_back(std::move(as_of));
  }
  if (list.machines.empty()) {
    return invalid(
        "{} has no [[machine]]: see docs/reference/machines.md for what to "
        "write",
        name);
  }
  return list;
}

}  // namespace leat
