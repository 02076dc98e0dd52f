#include "bench/machine.h"

#include <cstdlib>
#include <fstream>
#include <string_view>

#include <sys/utsname.h>

#include "profiler/machine.h"

namespace tandem::bench {
namespace {

std::string_view Trim(std::string_view text) {
  const auto drop = [](char c) { return c == ' ' || c == '\t' || c == '"' || c == '\n' || c == '\r'; };
  while (!text.empty() && drop(text.front())) text.remove_prefix(1);
  while (!text.empty() && drop(text.back())) text.remove_suffix(1);
  return text;
}

// The value after `name` and `separator` on the first such line of a file; empty when there is none.
std::string FieldOf(const std::filesystem::path& file, std::string_view name, char separator) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t at = line.find(separator);
    if (at != std::string::npos && Trim(line.substr(0, at)) == name) return std::string(Trim(line.substr(at + 1)));
  }
  return {};
}

std::string FirstLine(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return std::string(Trim(line));
}

std::string OrUnknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
}

bool IsCommit(std::string_view text) {
  return text.size() >= 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string PackedRef(const std::filesystem::path& git, std::string_view name) {
  std::ifstream stream(git / "packed-refs");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t space = line.find(' ');
    if (space != std::string::npos && Trim(line.substr(space)) == name) return line.substr(0, space);
  }
  return {};
}

}  // namespace

Machine DescribeMachine() {
  Machine machine;
  machine.cpu = OrUnknown(FieldOf("/proc/cpuinfo", "model name", ':'));
  machine.cores = UsableCores();
  machine.memory_gb = std::strtod(FieldOf("/proc/meminfo", "MemTotal", ':').c_str(), nullptr) / (1024 * 1024);
  utsname names{};
  machine.kernel = uname(&names) == 0 ? names.release : "unknown";
  machine.os = OrUnknown(FieldOf("/etc/os-release", "PRETTY_NAME", '='));
  return machine;
}

std::string CommitOf(const std::filesystem::path& root) {
  std::filesystem::path git = root / ".git";
  // In a linked working tree it is a file that names a folder, which in turn names that of the branches.
  const std::string linked = FirstLine(git);
  if (linked.starts_with("gitdir: ")) git = root / linked.substr(8);
  const std::string common = FirstLine(git / "commondir");
  const std::filesystem::path branches = common.empty() ? git : git / common;
  std::string head = FirstLine(git / "HEAD");
  if (head.starts_with("ref: ")) {
    const std::string name = head.substr(5);
    head = FirstLine(branches / name);
    if (head.empty()) head = PackedRef(branches, name);
  }
  return IsCommit(head) ? head : "unknown";
}

}  // namespace tandem::bench
