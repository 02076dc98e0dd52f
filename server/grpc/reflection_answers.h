#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/wire/proto/reflection.pb.h"

namespace google::protobuf {
class Descriptor;
class EnumDescriptor;
class FileDescriptor;
class ServiceDescriptor;
}  // namespace google::protobuf

namespace tandem::grpc_front {

// What reflection says of some services: their files and all that these import. Nothing else that is linked into the
// program can be asked for. Pure; constant after construction.
class ReflectionAnswers {
 public:
  // Full names of linked services. grpc.reflection.v1alpha.ServerReflection is there, too, made from v1.
  explicit ReflectionAnswers(std::span<const std::string_view> services);

  // What is not known, and what is not a question, is answered with an error.
  void Answer(const grpc::reflection::v1::ServerReflectionRequest& asked,
              grpc::reflection::v1::ServerReflectionResponse& response) const;

 private:
  void AddService(const google::protobuf::ServiceDescriptor& service);
  void AddFile(const google::protobuf::FileDescriptor& file);
  void AddMessage(const google::protobuf::Descriptor& message, const std::string& file);
  void AddEnum(const google::protobuf::EnumDescriptor& type, const std::string& file);

  std::vector<std::string> services_;
  // By file name: the file itself, serialized, then what it imports, directly or not.
  std::unordered_map<std::string, std::vector<std::string>> files_;
  // By full name of a type, field, value, service or method: its file's name. A table of our own, because protobuf's
  // pool remembers for ever every name that it was asked for in vain.
  std::unordered_map<std::string, std::string> symbols_;
};

}  // namespace tandem::grpc_front
