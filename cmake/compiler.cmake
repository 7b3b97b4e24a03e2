# A machine without a compiler most likely lacks all the rest: the error names it all.
include(CheckLanguage)
check_language(CXX)
if(NOT CMAKE_CXX_COMPILER)
  file(STRINGS ${PROJECT_SOURCE_DIR}/tools/debian-packages.txt leat_packages REGEX "^[a-z]")
  list(TRANSFORM leat_packages REPLACE "[| ].*" "")
  list(JOIN leat_packages " " leat_packages)
  message(FATAL_ERROR "There is no C++ compiler here. On Debian 12 this installs one, and the libraries "
    "that Leat is built with:\n"
    "  apt-get install -y --no-install-recommends ${leat_packages}\n"
    "Elsewhere install what these names stand for; tools/debian-packages.txt says why each is needed.")
endif()
enable_language(C)
enable_language(CXX)
