#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <sys/stat.h>

namespace tandem::jobs {

// A tree of plain files that looks like one of the kernel's control groups of version 2, with one group in it.
inline void MakeControlGroup(const std::filesystem::path& parent, const std::string& group) {
  std::filesystem::create_directories(parent / group);
  std::ofstream(parent / "cgroup.controllers") << "cpu io memory pids\n";
  std::ofstream(parent / "cgroup.subtree_control") << "memory\n";
  for (const char* const file : {"cgroup.procs", "memory.max", "memory.swap.max"}) std::ofstream{parent / group / file};
  std::ofstream(parent / group / "memory.events") << "low 0\nhigh 0\nmax 5\noom 1\noom_kill 0\n";
}

// The same with a group that nobody can move into: whoever writes to its door hears that it is full.
inline void MakeClosedControlGroup(const std::filesystem::path& parent, const std::string& group) {
  MakeControlGroup(parent, group);
  std::filesystem::remove(parent / group / "cgroup.procs");
  std::filesystem::create_symlink("/dev/full", parent / group / "cgroup.procs");
}

// How the group of a trainer is called.
inline std::string GroupNameOf(const std::filesystem::path& state, const std::string& trainer) {
  struct stat status{};
  ::stat(state.c_str(), &status);
  return "tandem-" + std::to_string(status.st_dev) + "-" + std::to_string(status.st_ino) + "-" + trainer;
}

inline std::string TextIn(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace tandem::jobs
