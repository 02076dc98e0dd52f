# Everything that we link, found once. gRPC is found directly: its CMake package and pkg-config file take half a minute to
# read.
find_package(Threads REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Protobuf REQUIRED)
find_package(Trantor CONFIG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(jsoncpp CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(simdjson CONFIG REQUIRED)
find_package(ftxui CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)

foreach(name grpc++ grpc gpr grpc++_reflection)
  find_library(TANDEM_LIBRARY_${name} ${name} REQUIRED)
  if(NOT TARGET gRPC::${name})
    add_library(gRPC::${name} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(gRPC::${name} PROPERTIES IMPORTED_LOCATION ${TANDEM_LIBRARY_${name}})
  endif()
endforeach()
# Headers of gRPC++ use Abseil's mutex inline.
find_library(TANDEM_ABSL_SYNCHRONIZATION absl_synchronization REQUIRED)
target_link_libraries(gRPC::grpc++ INTERFACE gRPC::grpc gRPC::gpr ${TANDEM_ABSL_SYNCHRONIZATION})
find_program(TANDEM_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)

find_package(GTest REQUIRED)
find_package(rapidcheck CONFIG REQUIRED)
