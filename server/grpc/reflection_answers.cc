#include "server/grpc/reflection_answers.h"

#include <set>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/support/status.h>

namespace tandem::grpc_front {
namespace {

namespace pb = google::protobuf;
namespace v1 = grpc::reflection::v1;

constexpr std::string_view kPackage = "grpc.reflection.v1";

void Fail(grpc::StatusCode code, const std::string& message, v1::ServerReflectionResponse& response) {
  v1::ErrorResponse& error = *response.mutable_error_response();
  error.set_error_code(code);
  error.set_error_message(message);
}

// The file of grpc.reflection.v1 with v1alpha in its place, in `pool`. Clients ask for either.
const pb::FileDescriptor* BuildAlpha(pb::DescriptorPool& pool) {
  pb::FileDescriptorProto file;
  v1::ServerReflectionRequest::descriptor()->file()->CopyTo(&file);
  std::string text;
  pb::TextFormat::PrintToString(file, &text);
  for (std::size_t at = text.find(kPackage); at != std::string::npos; at = text.find(kPackage, at + 1)) {
    text.insert(at + kPackage.size(), "alpha");
  }
  pb::FileDescriptorProto alpha;
  if (!pb::TextFormat::ParseFromString(text, &alpha)) return nullptr;
  alpha.set_name("grpc/reflection/v1alpha/reflection.proto");
  return pool.BuildFile(alpha);
}

void AppendWithImports(const pb::FileDescriptor& file, std::set<const pb::FileDescriptor*>& seen,
                       std::vector<std::string>& serialized) {
  if (!seen.insert(&file).second) return;
  pb::FileDescriptorProto proto;
  file.CopyTo(&proto);
  serialized.push_back(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AppendWithImports(*file.dependency(i), seen, serialized);
}

}  // namespace

ReflectionAnswers::ReflectionAnswers(std::span<const std::string_view> services) {
  for (const std::string_view name : services) {
    const pb::ServiceDescriptor* service = pb::DescriptorPool::generated_pool()->FindServiceByName(std::string(name));
    if (service != nullptr) AddService(*service);
  }
  pb::DescriptorPool pool(pb::DescriptorPool::generated_pool());
  if (const pb::FileDescriptor* alpha = BuildAlpha(pool)) AddService(*alpha->service(0));
}

void ReflectionAnswers::Answer(const v1::ServerReflectionRequest& asked, v1::ServerReflectionResponse& response) const {
  response.set_valid_host(asked.host());
  *response.mutable_original_request() = asked;
  std::string name;
  switch (asked.message_request_case()) {
    case v1::ServerReflectionRequest::kListServices:
      for (const std::string& service : services_) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      return;
    case v1::ServerReflectionRequest::kFileByFilename: name = asked.file_by_filename(); break;
    case v1::ServerReflectionRequest::kFileContainingSymbol: {
      const auto symbol = symbols_.find(asked.file_containing_symbol());
      if (symbol != symbols_.end()) name = symbol->second;
      break;
    }
    case v1::ServerReflectionRequest::kFileContainingExtension:
    case v1::ServerReflectionRequest::kAllExtensionNumbersOfType:
      return Fail(grpc::StatusCode::NOT_FOUND, "no message here has extensions", response);
    case v1::ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      return Fail(grpc::StatusCode::INVALID_ARGUMENT, "the request asks for nothing", response);
  }
  const auto file = files_.find(name);
  if (file == files_.end()) return Fail(grpc::StatusCode::NOT_FOUND, "this server does not know that name", response);
  auto& found = *response.mutable_file_descriptor_response()->mutable_file_descriptor_proto();
  found.Assign(file->second.begin(), file->second.end());
}

void ReflectionAnswers::AddService(const pb::ServiceDescriptor& service) {
  services_.push_back(service.full_name());
  AddFile(*service.file());
}

void ReflectionAnswers::AddFile(const pb::FileDescriptor& file) {
  std::vector<std::string>& serialized = files_[file.name()];
  if (!serialized.empty()) return;
  std::set<const pb::FileDescriptor*> seen;
  AppendWithImports(file, seen, serialized);
  for (int i = 0; i < file.message_type_count(); ++i) AddMessage(*file.message_type(i), file.name());
  for (int i = 0; i < file.enum_type_count(); ++i) AddEnum(*file.enum_type(i), file.name());
  for (int i = 0; i < file.service_count(); ++i) {
    const pb::ServiceDescriptor& service = *file.service(i);
    symbols_[service.full_name()] = file.name();
    for (int k = 0; k < service.method_count(); ++k) symbols_[service.method(k)->full_name()] = file.name();
  }
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i));
}

void ReflectionAnswers::AddMessage(const pb::Descriptor& message, const std::string& file) {
  symbols_[message.full_name()] = file;
  for (int i = 0; i < message.field_count(); ++i) symbols_[message.field(i)->full_name()] = file;
  for (int i = 0; i < message.nested_type_count(); ++i) AddMessage(*message.nested_type(i), file);
  for (int i = 0; i < message.enum_type_count(); ++i) AddEnum(*message.enum_type(i), file);
}

void ReflectionAnswers::AddEnum(const pb::EnumDescriptor& type, const std::string& file) {
  symbols_[type.full_name()] = file;
  for (int i = 0; i < type.value_count(); ++i) symbols_[type.value(i)->full_name()] = file;
}

}  // namespace tandem::grpc_front
