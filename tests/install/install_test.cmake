# Run by ctest; stops at the first command that fails.
set(folder ${BUILD}/install_test)
file(REMOVE_RECURSE ${folder})

macro(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endmacro()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${folder}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${folder}/build -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${folder}/prefix -D CMAKE_CXX_COMPILER=${CXX}
  -D "CMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build ${folder}/build)
run(${folder}/build/consumer)
