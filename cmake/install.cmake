# The package for others to link: `find_package(leat)` gives leat::leat, all
# libraries in one.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY LEAT_LIBRARIES)
add_library(leat_all INTERFACE)
target_link_libraries(leat_all INTERFACE ${libraries})
set_target_properties(leat_all PROPERTIES EXPORT_NAME leat)
add_library(leat::leat ALIAS leat_all)

# leat::store_s3 and not leat::leat_store_s3.
foreach(library IN LISTS libraries)
  string(REGEX REPLACE "^leat_" "" exported ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${exported})
endforeach()
set_target_properties(leat_build_flags PROPERTIES EXPORT_NAME build_flags)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/leat)
install(TARGETS leat_all leat_build_flags ${libraries} EXPORT leat
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT leat NAMESPACE leat:: FILE leat-targets.cmake
  DESTINATION ${config_folder})
# The public headers: leat/leat.h and all that it includes. No other is installed.
set(LEAT_PUBLIC_HEADERS
  leat.h
  api/batch_reader.h
  api/reader_options.h
  base/check.h
  base/clock.h
  base/error.h
  base/hash.h
  base/ids.h
  base/result.h
  engine/loader_stats.h
  engine/shuffle_choice.h
  metrics/stalls.h
  pipeline/batch.h
  pipeline/program/tensor.h
  pipeline/slot.h)
foreach(header IN LISTS LEAT_PUBLIC_HEADERS)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES leat/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leat/${folder})
endforeach()
write_basic_package_version_file(${CMAKE_BINARY_DIR}/leat-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/leat-config.cmake
  ${CMAKE_BINARY_DIR}/leat-config-version.cmake DESTINATION ${config_folder})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(TARGET leat)  # Apart from the libraries, so that PATH can name its folder.
  set_target_properties(leat PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endif()

# All that users get, and nothing else.
add_custom_target(leat_shipped)
foreach(target IN ITEMS ${libraries} leat _native)
  if(TARGET ${target})
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
      add_dependencies(leat_shipped ${target})
    endif()
  endif()
endforeach()
