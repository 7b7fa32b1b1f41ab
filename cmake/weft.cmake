# How a folder becomes a target:
#
#   weft_library(NAME base DIR core/base DEPS ... LIBS ...)
#
# takes every .cc beside it that is not *_test.cc or *_main.cc, links the named weft targets, and
# builds the folder's *_test.cc files into one GoogleTest program, weft_<name>_test.

find_package(PkgConfig REQUIRED)

add_library(weft_flags INTERFACE)
target_include_directories(weft_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
target_compile_options(weft_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror -ffp-contract=off
                       -fno-omit-frame-pointer
                       # __FILE__ in a CHECK names the file inside the tree, wherever the tree lies.
                       -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these two at -O2 and above inside libstdc++.
  target_compile_options(weft_flags INTERFACE -Wno-stringop-overflow -Wno-array-bounds)
endif()
# WEFT_SANITIZE is a list for -fsanitize ("thread"), or ON for address and undefined.
if(WEFT_SANITIZE)
  set(sanitizers ${WEFT_SANITIZE})
  if(WEFT_SANITIZE MATCHES "^(ON|TRUE|1)$")
    set(sanitizers address,undefined)
  endif()
  target_compile_options(weft_flags INTERFACE -fsanitize=${sanitizers} -fno-sanitize-recover=all)
  target_compile_definitions(weft_flags INTERFACE WEFT_DCHECK=1)
  target_link_options(weft_flags INTERFACE -fsanitize=${sanitizers})
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(weft_flags INTERFACE WEFT_DCHECK=1)
endif()
if(WEFT_FUZZ)
  target_compile_options(weft_flags INTERFACE -fsanitize=fuzzer-no-link)  # coverage, so that libFuzzer learns
endif()
find_program(WEFT_MOLD mold)
if(WEFT_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_link_options(weft_flags INTERFACE -fuse-ld=mold)
endif()
find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  # Relative to the root, so that several checkouts share what was compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  ${WEFT_CCACHE})
endif()

if(WEFT_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# One program of tests: weft_test(NAME x SOURCES ... DEPS ...).
function(weft_test)
  cmake_parse_arguments(T "" "NAME;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT WEFT_TESTS)
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  add_executable(weft_${T_NAME}_test ${T_SOURCES})
  target_link_libraries(weft_${T_NAME}_test PRIVATE ${T_DEPS} GTest::gtest GTest::gmock GTest::gtest_main weft_flags)
  # Only where they are used: they differ between checkouts, and a compiler cache would share nothing.
  foreach(source ${T_SOURCES})
    get_filename_component(source ${source} ABSOLUTE)
    file(STRINGS ${source} uses REGEX "WEFT_(SOURCE|BINARY)_DIR" LIMIT_COUNT 1)
    if(uses)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS
                   WEFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}" WEFT_BINARY_DIR="${PROJECT_BINARY_DIR}")
    endif()
  endforeach()
  set(serial)
  if(T_NAME MATCHES "^live")
    set(serial RUN_SERIAL TRUE)  # real sockets, real time: nothing beside them
  endif()
  # A parameter has its name in the test's; what gtest prints of it besides may be an address, another one each time.
  gtest_discover_tests(weft_${T_NAME}_test TEST_PREFIX ${T_NAME}. DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
                       PROPERTIES TIMEOUT ${T_TIMEOUT} ${serial})
endfunction()

function(weft_library)
  cmake_parse_arguments(L "PURE" "NAME" "DEPS;LIBS;SUBDIRS" ${ARGN})
  set(globs *.cc)
  foreach(sub ${L_SUBDIRS})
    list(APPEND globs ${sub}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${globs})
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|main)\\.cc$")
  if(sources)
    add_library(weft_${L_NAME} STATIC ${sources})
    target_link_libraries(weft_${L_NAME} PUBLIC ${L_DEPS} ${L_LIBS} weft_flags)
    if(L_PURE)
      target_compile_options(weft_${L_NAME} PRIVATE -fno-exceptions -fno-rtti)
    endif()
  else()
    add_library(weft_${L_NAME} INTERFACE)
    target_link_libraries(weft_${L_NAME} INTERFACE ${L_DEPS} ${L_LIBS} weft_flags)
  endif()
  if(tests)
    weft_test(NAME ${L_NAME} SOURCES ${tests} DEPS weft_${L_NAME})
  endif()
endfunction()

# One libFuzzer program, fuzz/<name>, for `./dev fuzz`: weft_fuzz(NAME decode SOURCES decode_fuzz.cc DEPS weft_wire).
# Its starting corpus, if it has one, is tests/fuzz/corpus/<name>/.
if(WEFT_FUZZ)
  add_custom_target(weft_fuzz_all)
endif()
function(weft_fuzz)
  cmake_parse_arguments(F "" "NAME" "SOURCES;DEPS" ${ARGN})
  if(NOT WEFT_FUZZ)
    return()
  endif()
  add_executable(weft_fuzz_${F_NAME} ${F_SOURCES})
  target_link_libraries(weft_fuzz_${F_NAME} PRIVATE ${F_DEPS} weft_flags)
  target_include_directories(weft_fuzz_${F_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_options(weft_fuzz_${F_NAME} PRIVATE -fsanitize=fuzzer)
  set_target_properties(weft_fuzz_${F_NAME} PROPERTIES OUTPUT_NAME ${F_NAME}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  add_dependencies(weft_fuzz_all weft_fuzz_${F_NAME})
endfunction()
