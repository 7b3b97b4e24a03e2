# Compiler settings of every target of ours.
add_library(leat_build_flags INTERFACE)
target_compile_features(leat_build_flags INTERFACE cxx_std_20)
target_include_directories(leat_build_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
target_compile_options(leat_build_flags INTERFACE
  $<BUILD_INTERFACE:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Wno-missing-field-initializers>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms about `"a" + std::string` at -O3: GCC bug 105651.
  target_compile_options(leat_build_flags INTERFACE $<BUILD_INTERFACE:-Wno-restrict>)
endif()
if(LEAT_WERROR)
  target_compile_options(leat_build_flags INTERFACE $<BUILD_INTERFACE:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(leat_build_flags INTERFACE
    $<BUILD_INTERFACE:-Wthread-safety;-Werror=thread-safety>)
  # A page in the agent is a string of 80 kB, which all compilers take.
  target_compile_options(leat_build_flags INTERFACE $<BUILD_INTERFACE:-Wno-overlength-strings>)
endif()
if(LEAT_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Asio's fences: unknown to the sanitizer, which then reports too much.
  target_compile_options(leat_build_flags INTERFACE $<BUILD_INTERFACE:-Wno-tsan>)
endif()
if(LEAT_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms about boost::optional: sanitized, GCC cannot follow its flag.
  target_compile_options(leat_build_flags INTERFACE $<BUILD_INTERFACE:-Wno-maybe-uninitialized>)
endif()
if(LEAT_SANITIZE)
  target_compile_definitions(leat_build_flags INTERFACE $<BUILD_INTERFACE:_GLIBCXX_ASSERTIONS>)
  target_compile_options(leat_build_flags INTERFACE
    -fsanitize=${LEAT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(leat_build_flags INTERFACE -fsanitize=${LEAT_SANITIZE})
  if(LEAT_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # They double GCC's time, and AddressSanitizer stops at a null pointer that is read. The
    # presets ubsan and fuzz look for all that is undefined, by clang, which takes a tenth more.
    target_compile_options(leat_build_flags INTERFACE -fno-sanitize=null,alignment)
  endif()
endif()
if(LEAT_BUILD_FUZZ)  # Coverage is what libFuzzer steers by.
  target_compile_options(leat_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
