// Every #include of ours against the table in ARCHITECTURE.md: a folder may use only what stands above it.

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tandem {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>>& Allowed() {
  static const std::map<std::string, std::set<std::string>> allowed = {
      {"api/base", {}},
      {"api/wire", {"api/base"}},
      {"memory", {"api/base"}},
      {"profiler", {"api/base"}},
      {"runtimes", {"api/base", "memory", "profiler"}},
      {"colocation", {"api/base", "memory", "profiler"}},
      {"server", {"api/base", "api/wire", "memory", "profiler", "runtimes", "colocation"}},
      // The program's commands: the one room that joins the server and the load generator.
      {"server/cli", {"api/base", "api/wire", "memory", "profiler", "runtimes", "colocation", "server", "loadgen"}},
      {"loadgen", {"api/base", "api/wire"}},
      {"bench",
       {"api/base", "api/wire", "memory", "profiler", "runtimes", "colocation", "server", "server/cli", "loadgen",
        "tests"}},
  };
  return allowed;
}

// The longest folder of the table that the path lies in; empty for what the table does not know.
std::string FolderOf(const std::string& path) {
  // It only lists the commands.
  if (path == "server/main.cc") return "server/cli";
  std::string best;
  for (const auto& [folder, uses] : Allowed()) {
    if (path.starts_with(folder + "/") && folder.size() > best.size()) best = folder;
  }
  return best.empty() && path.starts_with("tests/") ? "tests" : best;
}

std::vector<std::string> QuotedIncludes(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> includes;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("#include \"")) continue;
    includes.push_back(line.substr(10, line.rfind('"') - 10));
  }
  return includes;
}

TEST(Layering, EveryIncludePointsUpTheTable) {
  const fs::path root = TANDEM_SOURCE_DIR;
  int checked = 0;
  for (const auto& [folder, uses] : Allowed()) {
    const fs::path top = folder == "server/cli" ? root / "server" : root / folder;
    for (const auto& entry : fs::recursive_directory_iterator(top)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc" && extension != ".cu") continue;
      const std::string file = fs::relative(entry.path(), root);
      const std::string home = FolderOf(file);
      if (home != folder) continue;
      for (const std::string& include : QuotedIncludes(entry.path())) {
        const std::string target = FolderOf(include);
        ++checked;
        EXPECT_FALSE(target.empty()) << file << " includes \"" << include << "\", which is in no folder of the table";
        EXPECT_TRUE(target == home || uses.contains(target))
            << file << " (" << home << ") must not include " << include << " (" << target << ")";
      }
    }
  }
  EXPECT_GT(checked, 100) << "the test looks in the wrong place";
}

}  // namespace
}  // namespace tandem
