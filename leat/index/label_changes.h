// Tells which labels mean other classes than in a former catalogue.
#pragma once
#include <string>
#include <vector>

namespace leat {

/// Labels are places in a list of names, so a class that is added or goes may
/// renumber the others. The text names the classes whose labels are others now,
/// and the list for `classes=` that keeps the former labels. It is empty if
/// each label that both lists have is the same class in both.
std::string label_changes(const std::vector<std::string>& before,
                          const std::vector<std::string>& now);

}  // namespace leat
