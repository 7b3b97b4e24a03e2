# Every knob of the build, and nowhere else. `cmake -LH` prints this table.
option(LEAT_BUILD_TESTS  "Build the C++ tests"                    ${PROJECT_IS_TOP_LEVEL})
option(LEAT_BUILD_BENCH  "Build the micro benchmarks"             OFF)
option(LEAT_BUILD_FUZZ   "Build the fuzz targets (clang only)"    OFF)
option(LEAT_BUILD_PYTHON "Build the Python module"                OFF)
option(LEAT_BUILD_TOOLS  "Build the leat command"                 ${PROJECT_IS_TOP_LEVEL})
option(LEAT_WERROR       "Treat warnings as errors"               OFF)
option(LEAT_TOGETHER     "Compile the sources of a module several at a time: much faster from nothing" OFF)
set(LEAT_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined")
# Both or neither: the module for an interpreter that need not be on this machine.
set(LEAT_PYTHON_HEADERS "" CACHE PATH "Folder with that interpreter's Python.h")
set(LEAT_PYTHON_SUFFIX "" CACHE STRING "The end of its modules' names, e.g. .cpython-312-x86_64-linux-gnu.so")
