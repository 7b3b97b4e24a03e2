# Every library we stand on, with its reason. All are Debian 12 packages;
# tools/debian-packages.txt lists them. Missing ones are reported at once and
# together.
set(leat_missing "")

# leat_find(DEBIAN-PACKAGE NAME [VERSION …])
macro(leat_find package name)
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    list(APPEND leat_missing ${package})
  endif()
endmacro()

# leat_find_by_pkg_config(DEBIAN-PACKAGE PREFIX MODULE HEADER)
macro(leat_find_by_pkg_config package prefix module header)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})
  else()
    find_path(${prefix}_FOUND ${header})
  endif()
  if(NOT ${prefix}_FOUND)
    list(APPEND leat_missing ${package})
  endif()
endmacro()

# leat_find_file(DEBIAN-PACKAGE VARIABLE find_path|find_library NAME)
macro(leat_find_file package variable how name)
  if("${how}" STREQUAL "find_path")
    find_path(${variable} ${name})
  else()
    find_library(${variable} ${name})
  endif()
  if(NOT ${variable})
    list(APPEND leat_missing ${package})
  endif()
endmacro()

find_package(Threads REQUIRED)
leat_find(pkg-config PkgConfig)
leat_find(libcurl4-openssl-dev CURL 7.81)    # HTTP client: the field's standard
leat_find(libssl-dev OpenSSL)                # SigV4's HMAC, TLS of our servers
leat_find(libfmt-dev fmt)                    # formatting: g++ 12 has no std::format
leat_find(libspdlog-dev spdlog)              # logs
leat_find(nlohmann-json3-dev nlohmann_json)  # JSON
leat_find(libpugixml-dev pugixml)            # S3's XML
leat_find(libjpeg62-turbo-dev JPEG)          # libjpeg-turbo, by the libjpeg API
leat_find(libpng-dev PNG)                    # libpng
leat_find(libcli11-dev CLI11)                # the command line
leat_find_file(libtomlplusplus-dev LEAT_TOMLPLUSPLUS_INCLUDE find_path toml++/toml.h)  # TOML: headers alone
leat_find_by_pkg_config(libxxhash-dev XXHASH libxxhash xxhash.h)  # XXH3: hashes
leat_find_by_pkg_config(libisal-dev ISAL libisal isa-l.h)         # CRC32C at 30 GB/s
leat_find_by_pkg_config(libwebp-dev WEBP libwebp webp/decode.h)   # WebP
leat_find_by_pkg_config(libtiff-dev TIFF libtiff-4>=4.5 tiffio.h) # TIFF: 4.5 bounds the memory of each file
leat_find_by_pkg_config(libhwy-dev HWY libhwy hwy/highway.h)      # portable SIMD: the resize
leat_find(libboost-dev Boost 1.74)           # Beast: our servers
if(LEAT_BUILD_PYTHON)                        # python/CMakeLists.txt uses them
  if(LEAT_PYTHON_HEADERS)
    set(PYBIND11_NOPYTHON ON)                # Its headers alone
  else()
    find_package(Python 3.9 COMPONENTS Interpreter Development.Module QUIET)
    if(NOT Python_Development.Module_FOUND)
      list(APPEND leat_missing python3-dev)
    endif()
  endif()
  leat_find(pybind11-dev pybind11 2.10 CONFIG)  # Debian's or PyPI's
endif()
if(LEAT_BUILD_TESTS)
  leat_find(libgtest-dev GTest)
  leat_find_file(libgmock-dev LEAT_GMOCK_INCLUDE find_path gmock/gmock.h)
  leat_find_file(librapidcheck-dev LEAT_RAPIDCHECK_INCLUDE find_path rapidcheck.h)
  leat_find_file(librapidcheck-dev LEAT_RAPIDCHECK_LIBRARY find_library rapidcheck)
endif()
if(LEAT_BUILD_BENCH)
  leat_find(libbenchmark-dev benchmark)
endif()

if(leat_missing)
  list(REMOVE_DUPLICATES leat_missing)
  list(JOIN leat_missing " " leat_missing)
  message(FATAL_ERROR "Leat is built with libraries that are missing here, or too old. On Debian 12:\n"
    "  apt-get install -y --no-install-recommends ${leat_missing}\n"
    "Elsewhere install what these names stand for; tools/debian-packages.txt says why each is needed.")
endif()

if(LEAT_BUILD_TESTS)
  add_library(leat_rapidcheck INTERFACE)     # property tests
  target_link_libraries(leat_rapidcheck INTERFACE ${LEAT_RAPIDCHECK_LIBRARY})
  target_include_directories(leat_rapidcheck SYSTEM INTERFACE ${LEAT_RAPIDCHECK_INCLUDE})
endif()
