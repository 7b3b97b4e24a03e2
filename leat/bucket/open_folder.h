// A folder of the file system that is closed once nobody holds it.
#pragma once
#include <dirent.h>

#include <memory>

namespace leat {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

}  // namespace leat
