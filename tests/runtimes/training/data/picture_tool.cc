// Decodes and resizes pictures as a job does, for tests in other languages. Reads lines `CHANNELS WIDTH HEIGHT INPUT
// OUTPUT` (width 0: as it is), and writes to OUTPUT three numbers and a line break, then the pixels. A picture that is
// refused is a line of output that says why; one that is not is an empty one.

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "runtimes/training/data/picture.h"

namespace tandem::training {
namespace {

constexpr std::int64_t kMostPixels = 1 << 24;

std::string Convert(int channels, int width, int height, const std::string& from, const std::string& to) {
  std::ifstream in(from, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  const auto decoded = DecodePicture(file, channels, kMostPixels, from);
  if (!decoded) return decoded.error().message;
  const Picture picture = width > 0 ? Resize(*decoded, width, height) : *decoded;
  std::ofstream out(to, std::ios::binary);
  out << picture.width << ' ' << picture.height << ' ' << picture.channels << '\n';
  out.write(reinterpret_cast<const char*>(picture.pixels.data()), static_cast<std::streamsize>(picture.pixels.size()));
  out.close();
  return out ? "" : "'" + to + "' cannot be written";
}

}  // namespace
}  // namespace tandem::training

int main() {
  int channels = 0;
  int width = 0;
  int height = 0;
  std::string from;
  std::string to;
  while (std::cin >> channels >> width >> height >> from >> to) {
    std::cout << tandem::training::Convert(channels, width, height, from, to) << std::endl;
  }
}
