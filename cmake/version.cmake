# Writes OUT from version.h.in with the commit of SOURCE, touching the file only when that changes.
# Run at every build of `weft`: cmake -DSOURCE=. -DOUT=f -DPROJECT_VERSION=x -P cmake/version.cmake
set(WEFT_COMMIT unknown)
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12 WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(WEFT_COMMIT ${described})
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/version.h.in ${OUT} @ONLY)
