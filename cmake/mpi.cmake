# Sets MPI_CXX_FOUND, and MPI::MPI_CXX where there is one.
#
# An MPI that can only run programs has a compiler's wrapper that names headers which are not there, and find_package
# takes that for an error of ours.
set(WEFT_MPI_HEADERS TRUE)
find_program(WEFT_MPI_WRAPPER mpicxx)
if(WEFT_MPI_WRAPPER)
  execute_process(COMMAND ${WEFT_MPI_WRAPPER} -show OUTPUT_VARIABLE WEFT_MPI_WRAPPED ERROR_QUIET)
  string(REGEX MATCHALL "-I[^ \n]+" WEFT_MPI_FOLDERS "${WEFT_MPI_WRAPPED}")
  foreach(folder IN LISTS WEFT_MPI_FOLDERS)
    string(SUBSTRING ${folder} 2 -1 folder)
    if(NOT EXISTS ${folder})
      set(WEFT_MPI_HEADERS FALSE)
    endif()
  endforeach()
endif()
if(WEFT_MPI_HEADERS)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
