// Which of the objects that are there are samples.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

/// The user's choice from a place. A value; the default takes what usual_data()
/// says.
struct Selection {
  /// Names and globs of whole keys (glob.h): the source itself. Each has to be
  /// met by some object. Empty: all.
  std::vector<std::string> patterns;
  /// Globs; one without a slash is looked for in every folder. Empty: all.
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  /// Ends of names, in any case, with or without the dot. Empty: the usual
  /// ones; "*": all.
  std::vector<std::string> extensions;

  bool is_usual() const;
  /// The objects that the patterns name without a wildcard: then nothing has to
  /// be listed. Empty if some pattern has one.
  std::vector<std::string> names() const;
  /// All of it, as a part of the key of a kept catalogue.
  std::string text() const;
};

struct Selected {
  std::vector<ObjectInfo> objects;
  /// Describes the objects that were left out, for one line of a log; empty if
  /// there are none.
  std::string left_out;
};

/// Takes from all objects of a place, keys relative to it, in their order.
/// Hidden ones never count. If no pattern of the user's names the end of a key,
/// usual_data() decides about it.
///
/// Errors:
///   kNotFound         nothing is there, or nothing is left; a pattern that
///                     nothing meets
///   kInvalidArgument  as Glob::parse()
Result<Selected> select_objects(std::vector<ObjectInfo> objects,
                                const Selection& selection);

/// The same for a part of a listing: nothing has to be there, and no pattern
/// has to match. usual_data() judges by this part alone.
std::vector<ObjectInfo> select_some(std::vector<ObjectInfo> objects,
                                    const Selection& selection);

/// True for an image by the end of its name.
bool is_image(std::string_view key);

/// True for what people put beside data and do not train on: "README.md",
/// "labels.csv", "LICENSE".
bool is_document(std::string_view key);

/// True for a name that ends as that of a single file does (".tar", ".jpg",
/// ".bin"), if a place could be a folder too.
bool is_named_as_file(std::string_view name);

}  // namespace leat
