# leat_module(store/s3 DEPS base store/http SOURCES s3_store.cc TESTS s3_store_test.cc
#             LIBS OpenSSL::Crypto PRIVATE_LIBS pugixml)
#
# One folder, one library, one test binary. DEPS names the modules it includes;
# which ones it may name is layers.txt, checked by tools/check_layers.py. A
# module without SOURCES is headers alone. With LEAT_TOGETHER, the compiler takes
# several sources at a time, but for those that APART names: tests replace their
# objects, or a private name of theirs is also another source's. A COLD module
# parses and prints: to optimise it takes longer than it gains.
function(leat_module name)
  cmake_parse_arguments(arg "COLD" "" "DEPS;SOURCES;TESTS;APART;LIBS;PRIVATE_LIBS;TEST_DEPS;TEST_LIBS" ${ARGN})
  string(REPLACE "/" "_" flat ${name})
  if(arg_APART)
    set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  if(arg_SOURCES)
    add_library(leat_${flat} STATIC ${arg_SOURCES})
    compile_together(leat_${flat})
    if(arg_COLD)
      optimise_less(leat_${flat})
    endif()
    set(scope PUBLIC)
    target_link_libraries(leat_${flat} PRIVATE ${arg_PRIVATE_LIBS})
  else()
    add_library(leat_${flat} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(leat_${flat} ${scope} leat_build_flags ${arg_LIBS})
  foreach(dep IN LISTS arg_DEPS)
    string(REPLACE "/" "_" flat_dep ${dep})
    target_link_libraries(leat_${flat} ${scope} leat_${flat_dep})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY LEAT_LIBRARIES leat_${flat})
  if(LEAT_BUILD_TESTS AND arg_TESTS)
    add_executable(leat_${flat}_test ${arg_TESTS})
    target_link_libraries(leat_${flat}_test PRIVATE leat_${flat}
      GTest::gtest_main GTest::gmock ${arg_TEST_LIBS})
    compile_test(leat_${flat}_test)
    foreach(dep IN LISTS arg_TEST_DEPS)
      string(REPLACE "/" "_" flat_dep ${dep})
      target_link_libraries(leat_${flat}_test PRIVATE leat_${flat_dep})
    endforeach()
    add_test(NAME ${name} COMMAND leat_${flat}_test)
    set_tests_properties(${name} PROPERTIES TIMEOUT 300
      # Tests that fork start threads in the child, which it dies of otherwise.
      ENVIRONMENT "TSAN_OPTIONS=die_after_fork=0")
  endif()
endfunction()

# The build type says more: it compiles sooner so.
function(optimise_less target)
  if(LEAT_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# For a program of tests: the modules that it tests are optimised, and it is less.
function(compile_test target)
  compile_together(${target})
  optimise_less(${target})
endfunction()

# compile_together(leat_cli [MOST]): with LEAT_TOGETHER, the compiler reads the headers that
# sources share once for up to MOST of them. The presets dev, debug and odr have it off, and
# so find sources that lack an include.
function(compile_together target)
  set(most 8)  # More take the memory of a small machine and leave its cores idle.
  if(ARGC GREATER 1)
    set(most ${ARGV1})
  endif()
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  if(LEAT_TOGETHER AND count GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${most})
  endif()
endfunction()
