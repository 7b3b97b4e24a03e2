// Which of the objects that are there are samples.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

/// What a user takes of a place. A value; the usual one takes what
/// usual_data() says.
struct Selection {
  /// Names and globs of whole keys (glob.h): the source itself. Each has to be
  /// met by some object. Empty: all.
  std::vector<std::string> patterns;
  /// Globs; one without a slash is looked for in every folder. Empty: all.
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  /// Ends of names, in any case, with or without the dot. Empty: what is usual;
  /// "*": all.
  std::vector<std::string> extensions;

  bool is_usual() const;
  /// What the patterns name without a wildcard: nothing has to be listed then.
  /// Empty if some pattern has one.
  std::vector<std::string> names() const;
  /// All of it, as part of what a kept catalogue goes by.
  std::string text() const;
};

struct Selected {
  std::vector<ObjectInfo> objects;
  /// What was left out, for one line of a log; empty if nothing.
  std::string left_out;
};

/// Takes from all objects of a place, keys relative to it, in their order.
/// Hidden ones never count. Of what no pattern of the user's names by its end,
/// usual_data() is taken.
///
/// Errors:
///   kNotFound         nothing is there, or nothing is left; a pattern that
///                     nothing meets
///   kInvalidArgument  as Glob::parse()
Result<Selected> select_objects(std::vector<ObjectInfo> objects,
                                const Selection& selection);

/// The same of a part of a listing, where nothing has to be there and no
/// pattern has to be met. What is usual is judged by this part alone.
std::vector<ObjectInfo> select_some(std::vector<ObjectInfo> objects,
                                    const Selection& selection);

/// True for an image by the end of its name.
bool is_image(std::string_view key);

/// True for what people put beside data and do not train on: "README.md",
/// "labels.csv", "LICENSE".
bool is_document(std::string_view key);

/// True for a name that ends as that of a single file does (".tar", ".jpg",
/// ".bin"), where a place could be a folder too.
bool is_named_as_file(std::string_view name);

}  // namespace leat
