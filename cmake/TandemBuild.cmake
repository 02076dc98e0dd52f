# Compiler settings and the helpers that every folder uses:
#   tandem_library(NAME HDRS … SRCS … DEPS …)   defines tandem_NAME and the alias tandem::NAME
#   tandem_test(FILE DEPS … [LABELS …])         defines one GoogleTest binary from one *_test.cc
# HEADERS names another set of precompiled headers.
# Headers are included from the root of the tree ("api/base/result.h").

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
# Of tests: most of a cold build is their compilation, and what they test is compiled as ever.
set(TANDEM_TEST_OPTIONS $<$<NOT:$<CONFIG:Debug>>:-O0>)

set(TANDEM_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, e.g. address,undefined or thread")
option(TANDEM_TIDY "Check every source with clang-tidy as it is compiled" OFF)

include(TandemDependencies)
find_program(TANDEM_MOLD mold)
if(TANDEM_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(tandem_settings INTERFACE)
target_include_directories(tandem_settings INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_options(tandem_settings INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(tandem_settings INTERFACE -Wthread-safety)
endif()
if(TANDEM_SANITIZE)
  set(TANDEM_SANITIZE_OPTIONS -fsanitize=${TANDEM_SANITIZE} -fno-omit-frame-pointer -DTANDEM_SANITIZED)
  if(TANDEM_SANITIZE MATCHES "thread")
    # With that macro protobuf's headers lay out maps otherwise than the library was built with; what the standard
    # library does with it is kept.
    list(APPEND TANDEM_SANITIZE_OPTIONS -U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  endif()
  target_compile_options(tandem_settings INTERFACE ${TANDEM_SANITIZE_OPTIONS})
  add_link_options(-fsanitize=${TANDEM_SANITIZE})
endif()
target_link_libraries(tandem_settings INTERFACE Threads::Threads)

# For every test. Debian's libraries are built without ThreadSanitizer, which cannot see how they synchronise. Memory that
# cannot be had is to be refused, as the system does, and little is to be kept of what was freed: tests look at how much
# the server holds.
# A server that leaves at once joins nobody: a report of that would wait for whoever does not read the log.
string(JOIN ":" tsan_options ignore_noninstrumented_modules=1 allocator_may_return_null=1 report_thread_leaks=0
  suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan_suppressions.txt)
set(TANDEM_TEST_ENVIRONMENT
  "TSAN_OPTIONS=${tsan_options}"
  "ASAN_OPTIONS=allocator_may_return_null=1:quarantine_size_mb=8")
set(TANDEM_TEST_TIMEOUT 120)
if(TANDEM_SANITIZE)
  set(TANDEM_TEST_TIMEOUT 600)
endif()

if(TANDEM_TIDY)
  find_program(TANDEM_CLANG_TIDY clang-tidy REQUIRED)
  # The name of the copy holds what the settings say, so that other settings are another command: all is checked again.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/.clang-tidy)
  file(SHA256 ${PROJECT_SOURCE_DIR}/.clang-tidy tidy_hash)
  set(tidy_settings ${PROJECT_BINARY_DIR}/clang-tidy-${tidy_hash}.yaml)
  configure_file(${PROJECT_SOURCE_DIR}/.clang-tidy ${tidy_settings} COPYONLY)
  # clang-tidy passes over warnings in system headers, but not over errors; its settings make errors of ours.
  set(CMAKE_CXX_CLANG_TIDY ${TANDEM_CLANG_TIDY} --quiet --config-file=${tidy_settings} --extra-arg=-Wno-error)
endif()

# CLI11 compiled once: as headers alone it costs every file that uses it five seconds.
set(cli11_source "")
foreach(part Argv Encoding StringTools Split Config Validators Option App Formatter)
  string(APPEND cli11_source "#include <CLI/impl/${part}_inl.hpp>\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/cli11.cc CONTENT "${cli11_source}")
add_library(tandem_cli11 STATIC ${CMAKE_BINARY_DIR}/cli11.cc)
target_compile_definitions(tandem_cli11 PUBLIC CLI11_COMPILE)
target_link_libraries(tandem_cli11 PUBLIC CLI11::CLI11)
target_compile_options(tandem_cli11 PRIVATE -w -O0 ${TANDEM_SANITIZE_OPTIONS})
set_target_properties(tandem_cli11 PROPERTIES CXX_CLANG_TIDY "")

# Standard headers that most files use, compiled once: a third of a cold build is spent on them otherwise. Every file
# still includes what it uses; the clang preset, which has no precompiled headers, shows when one does not.
set(TANDEM_COMMON_HEADERS <algorithm> <array> <atomic> <chrono> <cstddef> <cstdint> <cstring> <expected> <filesystem>
  <format> <fstream> <functional> <map> <memory> <optional> <span> <string> <string_view> <thread> <utility> <vector>)
function(tandem_precompile NAME)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${NAME}.cc CONTENT "")
  add_library(${NAME} OBJECT ${CMAKE_BINARY_DIR}/${NAME}.cc)
  target_link_libraries(${NAME} PRIVATE tandem_settings)
  target_compile_options(${NAME} PRIVATE -fpch-preprocess)
  target_precompile_headers(${NAME} PRIVATE ${TANDEM_COMMON_HEADERS} ${ARGN})
endfunction()
if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  # A target with definitions of its own reads the headers as text; that is no fault.
  set(CMAKE_PCH_WARN_INVALID OFF)
  tandem_precompile(tandem_common_headers)
  tandem_precompile(tandem_test_headers <gmock/gmock.h> <gtest/gtest.h>)
  target_compile_options(tandem_test_headers PRIVATE ${TANDEM_TEST_OPTIONS})
  # With its definitions, which are in what is precompiled: else every test would read the headers as text.
  target_link_libraries(tandem_test_headers PRIVATE GTest::gmock)
  tandem_precompile(tandem_cli_headers <CLI/CLI.hpp> <json/json.h>)
  target_link_libraries(tandem_cli_headers PRIVATE tandem_cli11 JsonCpp::JsonCpp)
  # With the definitions and folders of those who use them: a precompiled header fits nobody else.
  tandem_precompile(tandem_torch_headers <ATen/ATen.h> <onnx/onnx_pb.h>)
  target_link_libraries(tandem_torch_headers PRIVATE tandem_torch tandem_onnx_proto)
endif()
function(tandem_use_precompiled TARGET HEADERS)
  if(TARGET ${HEADERS})
    target_compile_options(${TARGET} PRIVATE -fpch-preprocess)
    target_precompile_headers(${TARGET} REUSE_FROM ${HEADERS})
  endif()
endfunction()

function(tandem_library NAME)
  cmake_parse_arguments(ARG "" "HEADERS" "HDRS;SRCS;DEPS" ${ARGN})
  add_library(tandem_${NAME} STATIC ${ARG_SRCS} ${ARG_HDRS})
  add_library(tandem::${NAME} ALIAS tandem_${NAME})
  target_link_libraries(tandem_${NAME} PUBLIC tandem_settings ${ARG_DEPS})
  if(NOT ARG_HEADERS)
    set(ARG_HEADERS tandem_common_headers)
  endif()
  tandem_use_precompiled(tandem_${NAME} ${ARG_HEADERS})
endfunction()

function(tandem_test FILE)
  cmake_parse_arguments(ARG "" "HEADERS" "DEPS;LABELS" ${ARGN})
  cmake_path(GET FILE STEM name)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR STEM folder)
  set(target ${folder}_${name})
  add_executable(${target} ${FILE})
  target_link_libraries(${target} PRIVATE tandem_settings ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  if(NOT ARG_HEADERS)
    set(ARG_HEADERS tandem_test_headers)
  endif()
  tandem_use_precompiled(${target} ${ARG_HEADERS})
  if(ARG_HEADERS STREQUAL tandem_test_headers) # Others fit only what is compiled like them.
    target_compile_options(${target} PRIVATE ${TANDEM_TEST_OPTIONS})
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${folder}/${name} COMMAND ${target})
  set_tests_properties(${folder}/${name} PROPERTIES TIMEOUT ${TANDEM_TEST_TIMEOUT} LABELS "${ARG_LABELS}"
    ENVIRONMENT "${TANDEM_TEST_ENVIRONMENT}")
  set_property(GLOBAL APPEND PROPERTY TANDEM_TEST_FILES ${CMAKE_CURRENT_SOURCE_DIR}/${FILE})
endfunction()

# Fails the configuration when a *_test.cc below tests/ was never given to tandem_test.
function(tandem_check_all_tests_registered)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
  get_property(registered GLOBAL PROPERTY TANDEM_TEST_FILES)
  foreach(file IN LISTS found)
    if(NOT file IN_LIST registered)
      message(FATAL_ERROR "${file} is not registered with tandem_test()")
    endif()
  endforeach()
endfunction()
