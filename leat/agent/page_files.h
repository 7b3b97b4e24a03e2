// The page that the agent serves: the files of page/, embedded in the binary.
#pragma once
#include <span>
#include <string_view>

namespace leat {

struct PageFile {
  std::string_view path;  ///< As requested: "/", "/assets/app.js".
  std::string_view type;  ///< The Content-Type.
  std::string_view body;
};

/// Built from dashboard/ (see its README) and kept in page/.
std::span<const PageFile> page_files();

}  // namespace leat
