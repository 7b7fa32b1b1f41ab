# Every header compiled alone, twice in one file: it includes what it uses, and it is guarded.
#
#   weft_headers_alone(TARGET weft_headers_core HEADERS src/core/base/units.h ... OPTIONS -fno-rtti)
#
# makes an object library, outside `all`, of one generated file per header (paths from the source root).
function(weft_headers_alone)
  cmake_parse_arguments(H "" "TARGET" "HEADERS;OPTIONS" ${ARGN})
  set(sources)
  foreach(header ${H_HEADERS})
    set(alone ${PROJECT_BINARY_DIR}/headers/${header}.cc)
    set(text "#include \"${PROJECT_SOURCE_DIR}/${header}\"\n#include \"${PROJECT_SOURCE_DIR}/${header}\"\n")
    file(CONFIGURE OUTPUT ${alone} CONTENT "${text}" @ONLY)
    list(APPEND sources ${alone})
  endforeach()
  add_library(${H_TARGET} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${H_TARGET} PRIVATE weft_flags)
  target_compile_options(${H_TARGET} PRIVATE -O0 ${H_OPTIONS})
endfunction()
