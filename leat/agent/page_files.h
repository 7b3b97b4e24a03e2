// The page that the agent serves: the files of page/, in the binary.
#pragma once
#include <span>
#include <string_view>

namespace leat {

struct PageFile {
  std::string_view path;  ///< As it is asked for: "/", "/assets/app.js".
  std::string_view type;  ///< For Content-Type.
  std::string_view body;
};

/// Made from dashboard/ (see its README) and kept in page/.
std::span<const PageFile> page_files();

}  // namespace leat
