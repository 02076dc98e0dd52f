# Everything that we link, found once. gRPC is found directly: its CMake package and pkg-config file take half a minute to
# read.
find_package(Threads REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(JPEG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(PNG REQUIRED)
find_package(Protobuf REQUIRED)
find_package(SQLite3 REQUIRED)
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
# Its headers use what C++23 deprecates, which clang reports where we instantiate them.
target_compile_options(rapidcheck INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)

# libtorch's own CMake package looks for all that it was built with.
add_library(tandem_torch INTERFACE)
foreach(name torch torch_cpu c10)
  find_library(TANDEM_LIBRARY_${name} ${name} REQUIRED)
  target_link_libraries(tandem_torch INTERFACE ${TANDEM_LIBRARY_${name}})
endforeach()
find_path(TANDEM_TORCH_INCLUDE torch/csrc/autograd/autograd.h REQUIRED)
target_include_directories(tandem_torch SYSTEM INTERFACE ${TANDEM_TORCH_INCLUDE}
  ${TANDEM_TORCH_INCLUDE}/torch/csrc/api/include)

# The messages of ONNX files, in the namespace that Debian's libraries have.
add_library(tandem_onnx_proto INTERFACE)
find_library(TANDEM_LIBRARY_onnx_proto onnx_proto REQUIRED)
target_link_libraries(tandem_onnx_proto INTERFACE ${TANDEM_LIBRARY_onnx_proto} protobuf::libprotobuf)
target_compile_definitions(tandem_onnx_proto INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx)
