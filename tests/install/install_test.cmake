# Run by ctest; stops at the first command that fails.
cmake_minimum_required(VERSION 3.22)
set(folder ${BUILD}/install_test)
file(REMOVE_RECURSE ${folder})

macro(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endmacro()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${folder}/prefix)

# Public headers alone, of which there are few.
file(GLOB_RECURSE headers RELATIVE ${folder}/prefix/include ${folder}/prefix/include/*)
list(LENGTH headers count)
if(count GREATER 15 OR NOT "leat/leat.h" IN_LIST headers)
  message(FATAL_ERROR "installed ${count} headers, at most 15 with leat/leat.h: ${headers}")
endif()

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${folder}/build -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${folder}/prefix -D CMAKE_CXX_COMPILER=${CXX}
  -D "CMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build ${folder}/build)

foreach(pet IN ITEMS cat dog)
  file(WRITE ${folder}/data/${pet}.txt "I am ${pet}")
endforeach()
run(${CMAKE_COMMAND} -E env LEAT_CACHE_DIR=${folder}/cache ${folder}/build/consumer ${folder}/data)
