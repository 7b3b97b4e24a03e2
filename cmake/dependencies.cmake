# Every library we stand on, with its reason. All are Debian 12 packages.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(CURL 7.81 REQUIRED)             # HTTP client: the field's standard
find_package(OpenSSL REQUIRED)               # SigV4's HMAC, TLS of our servers
find_package(fmt REQUIRED)                   # formatting: g++ 12 has no std::format
find_package(spdlog REQUIRED)                # logs
find_package(nlohmann_json REQUIRED)         # JSON
find_package(pugixml REQUIRED)               # S3's XML
find_package(JPEG REQUIRED)                  # libjpeg-turbo, by the libjpeg API
find_package(PNG REQUIRED)                   # libpng
find_package(CLI11 REQUIRED)                 # the command line
find_path(LEAT_TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)   # TOML: headers alone
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)  # XXH3: hashes
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)      # CRC32C at 30 GB/s
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp)      # WebP
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)        # portable SIMD: the resize
find_package(Boost 1.74 REQUIRED)            # Beast: our servers
if(LEAT_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_path(LEAT_RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
  find_library(LEAT_RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
  add_library(leat_rapidcheck INTERFACE)     # property tests
  target_link_libraries(leat_rapidcheck INTERFACE ${LEAT_RAPIDCHECK_LIBRARY})
  target_include_directories(leat_rapidcheck SYSTEM INTERFACE ${LEAT_RAPIDCHECK_INCLUDE})
endif()
if(LEAT_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
