#pragma once

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/repository/model_repository.h"

namespace tandem::repository {

// A folder for one test that goes with it.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-repository-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = std::filesystem::canonical(pattern);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // Each write looks later to the file system than the one before, whatever its clock's resolution.
  void Write(const std::string& file, const std::string& text) const {
    static std::atomic<int> tick{0};
    const std::filesystem::path full = path_ / file;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary | std::ios::trunc) << text;
    const auto base = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    std::filesystem::last_write_time(full, base + std::chrono::seconds(++tick));
  }

  void Remove(const std::string& name) const { std::filesystem::remove_all(path_ / name); }

 private:
  std::filesystem::path path_;
};

// A model file for FakeFactory: takes "x" FP32 [batch,2], gives "y" of the same shape, x + n.
inline std::string AddModel(int n) {
  return "batch\nin x FP32 -1 2\nout y FP32 -1 2\nadd " + std::to_string(n) + "\n";
}

// Makes sessions from text files: lines "in NAME TYPE DIMS…", "out NAME TYPE DIMS…", "batch" (their first dimension),
// "add N", "fail" (every run fails), "endless" (every run waits to be cancelled), "corrupt" (does not load), "throw"
// (throws while loading). Any other word is corrupt. Thread-safe.
class FakeFactory final : public SessionFactory {
 public:
  class Session final : public InferenceSession {
   public:
    Session(FakeFactory& factory, ModelSignature signature, float add, bool fail, bool endless = false)
        : factory_(factory), signature_(std::move(signature)), add_(add), fail_(fail), endless_(endless) {
      ++factory_.alive;
    }
    ~Session() override { --factory_.alive; }

    [[nodiscard]] const ModelSignature& signature() const override { return signature_; }

    [[nodiscard]] Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                                  CancelToken& cancel) override {
      ++factory_.runs;
      while (endless_ && !cancel.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (endless_) return Fail(ErrorCode::kCancelled, "the run was cancelled");
      {
        const std::scoped_lock lock(factory_.mu_);
        factory_.last_inputs_.assign(inputs.begin(), inputs.end());
      }
      if (fail_) return Invalid("the fake model fails every run");
      std::vector<Tensor> results;
      for (const std::string& name : outputs) {
        AlignedBuffer buffer(inputs.empty() ? 0 : inputs[0].data.size());
        for (std::size_t at = 0; at + sizeof(float) <= buffer.size(); at += sizeof(float)) {
          float value = 0;
          std::memcpy(&value, inputs[0].data.view.data() + at, sizeof(value));
          value += add_;
          std::memcpy(buffer.data() + at, &value, sizeof(value));
        }
        results.push_back(
            {name, DataType::kFp32, inputs.empty() ? Shape{} : inputs[0].shape, Bytes::Own(std::move(buffer))});
      }
      return results;
    }

   private:
    FakeFactory& factory_;
    const ModelSignature signature_;
    const float add_;
    const bool fail_;
    const bool endless_;
  };

  [[nodiscard]] Result<std::unique_ptr<InferenceSession>> Create(const SessionRequest& request) override {
    ++created;
    if (on_create) on_create(request);
    {
      const std::scoped_lock lock(mu_);
      last_request_ = request;
    }
    ModelSignature signature;
    float add = 0;
    bool fail = false;
    bool endless = false;
    std::ifstream file(request.file);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string word;
      words >> word;
      if (word == "throw") throw std::runtime_error("the fake runtime throws");
      if (word == "add") {
        words >> add;
      } else if (word == "fail") {
        fail = true;
      } else if (word == "endless") {
        endless = true;
      } else if (word == "batch") {
        signature.named_batch = true;
      } else if (word == "in" || word == "out") {
        TensorSpec spec;
        std::string type;
        words >> spec.name >> type;
        spec.type = ParseDataType(type).value();
        for (std::int64_t dim = 0; words >> dim;) spec.shape.push_back(dim);
        (word == "in" ? signature.inputs : signature.outputs).push_back(std::move(spec));
      } else {
        return Invalid("the model file is corrupt");
      }
    }
    return std::make_unique<Session>(*this, std::move(signature), add, fail, endless);
  }

  [[nodiscard]] std::map<std::string, std::string> Metadata(const SessionRequest&) override { return metadata; }

  [[nodiscard]] SessionRequest last_request() const {
    const std::scoped_lock lock(mu_);
    return last_request_;
  }
  [[nodiscard]] std::vector<Tensor> last_inputs() const {
    const std::scoped_lock lock(mu_);
    return last_inputs_;
  }

  std::atomic<int> created{0};
  std::atomic<int> alive{0};
  std::atomic<int> runs{0};
  std::function<void(const SessionRequest&)> on_create;  // Set before use.
  std::map<std::string, std::string> metadata;           // Of every file. Set before use.

 private:
  mutable std::mutex mu_;
  SessionRequest last_request_;
  std::vector<Tensor> last_inputs_;
};

// Runs "x" = [0, 0] through a servable of AddModel(n) and gives n back.
inline Result<float> Ask(const Servable& servable, RunWidth width = RunWidth::kAll) {
  AlignedBuffer zeros(2 * sizeof(float));
  std::memset(zeros.data(), 0, zeros.size());
  const std::vector<Tensor> inputs = {{"x", DataType::kFp32, {1, 2}, Bytes::Own(std::move(zeros))}};
  const std::vector<std::string> outputs = {"y"};
  CancelToken cancel;
  TANDEM_ASSIGN(const std::vector<Tensor> results, servable.session(width).Run(inputs, outputs, cancel));
  float value = 0;
  std::memcpy(&value, results[0].data.view.data(), sizeof(value));
  return value;
}

// What the repository logged. Thread-safe.
class LogLines {
 public:
  [[nodiscard]] std::function<void(LogLevel, const std::string&)> Sink() {
    return [this](LogLevel, const std::string& text) {
      const std::scoped_lock lock(mu_);
      text_ += text + "\n";
    };
  }
  [[nodiscard]] std::string text() const {
    const std::scoped_lock lock(mu_);
    return text_;
  }

 private:
  mutable std::mutex mu_;
  std::string text_;
};

}  // namespace tandem::repository
