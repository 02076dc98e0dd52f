#pragma once

#include <memory>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

namespace tandem::testing {

// A call of any method, one step at a time, with messages as bytes: what no generated client does.
class RawCall {
 public:
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : call_(grpc::GenericStub(channel).PrepareCall(&context_, method, &queue_)) {
    call_->StartCall(nullptr);
    EXPECT_TRUE(Wait());
  }

  bool Write(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    return Wait();
  }
  bool WritesDone() {
    call_->WritesDone(nullptr);
    return Wait();
  }
  bool Read(std::string& bytes) {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, nullptr);
    grpc::Slice slice;
    if (!Wait() || !buffer.DumpToSingleSlice(&slice).ok()) return false;
    bytes.assign(reinterpret_cast<const char*>(slice.begin()), slice.size());
    return true;
  }
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    EXPECT_TRUE(Wait());
    return status;
  }
  void Cancel() { context_.TryCancel(); }

 private:
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  const std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

}  // namespace tandem::testing
