#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/result.h"
#include "colocation/servable.h"
#include "profiler/learnt_runs_text.h"

namespace tandem::repository {

// Keeps what was learnt of the runs of versions for those that are loaded after them, in this process or the next: from
// the same files, for the same providers, on the same machine; in this process also what requests of a model are used
// to say. Owned by the lifecycle, which opens it before the models
// are loaded; told of versions by ModelLoader. Thread-safe. None of it is on the path of a request.
class RunArchive {
 public:
  // `setting`: one line with all that times depend on besides the models.
  explicit RunArchive(std::string setting) : setting_(std::move(setting)) {}

  // From now on Save() writes to the file. An error, naming it, when there is one that is not to be understood: it is
  // as if there were none. What was learnt in another setting is passed over.
  [[nodiscard]] Status Open(std::filesystem::path file) EXCLUDES(mu_);

  // Tells the version what is known of its runs and of its model's requests, and learns from it as long as it lives.
  // Before it is served.
  void Adopt(const std::shared_ptr<Servable>& servable, std::uint64_t fingerprint) EXCLUDES(mu_);

  // Writes what is known, aside and then renamed; nothing without a file, or when it has not changed. An error names
  // the file.
  [[nodiscard]] Status Save() EXCLUDES(mu_);

 private:
  struct Entry {
    std::uint64_t fingerprint = 0;
    std::vector<LearntRun> runs;
    std::vector<LearntRun> narrow;  // On one thread.
    std::weak_ptr<const Servable> servable;
    std::shared_ptr<RequestHabits> habits;  // Shared with all versions of the model.
  };
  using Key = std::pair<std::string, std::int64_t>;

  // Let go of after the lock: the last owner of a version destroys it.
  using Kept = std::vector<std::shared_ptr<const Servable>>;

  // Takes over what the version has learnt meanwhile.
  static void Refresh(Entry& entry, Kept& kept);
  // Of the model, as far as any of its versions was adopted; else new ones.
  [[nodiscard]] std::shared_ptr<RequestHabits> HabitsOf(const std::string& model) const REQUIRES(mu_);
  void MakeRoom() REQUIRES(mu_);

  // Constant after construction.
  const std::string setting_;

  Mutex mu_;  // Also held while the file is read and written.
  std::filesystem::path file_ GUARDED_BY(mu_);
  std::string saved_ GUARDED_BY(mu_);  // What stands in the file.
  std::map<Key, Entry> entries_ GUARDED_BY(mu_);
};

}  // namespace tandem::repository
