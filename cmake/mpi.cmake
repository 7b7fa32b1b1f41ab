# Sets MPI_CXX_FOUND, and MPI::MPI_CXX where there is one.
#
# An MPI that can only run programs has a compiler's wrapper that names headers which are not there, and find_package
# takes that for an error of ours.
set(headers TRUE)
find_program(MPI_WRAPPER mpicxx)
if(MPI_WRAPPER)
  execute_process(COMMAND ${MPI_WRAPPER} -show OUTPUT_VARIABLE wrapped ERROR_QUIET)
  string(REGEX MATCHALL "-I[^ \n]+" folders "${wrapped}")
  foreach(folder IN LISTS folders)
    string(SUBSTRING ${folder} 2 -1 folder)
    if(NOT EXISTS ${folder})
      set(headers FALSE)
    endif()
  endforeach()
endif()
if(headers)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
