# Compiles for 64-bit ARM with Debian's g++-aarch64-linux-gnu. LEAT_SYSROOT is a folder
# in which Debian's arm64 packages of what cmake/dependencies.cmake looks for lie
# unpacked; tools/wheel.sh makes one.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LEAT_SYSROOT)
if(NOT EXISTS "${LEAT_SYSROOT}/usr/include")
  message(FATAL_ERROR "LEAT_SYSROOT is \"${LEAT_SYSROOT}\", where no usr/include lies: "
    "`./dev wheel --arch aarch64` makes one in build/roots.")
endif()
set(CMAKE_SYSROOT ${LEAT_SYSROOT})
set(CMAKE_FIND_ROOT_PATH ${LEAT_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${LEAT_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${LEAT_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${LEAT_SYSROOT}/usr/share/pkgconfig)
