#include "server/cli/demo_digits.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/npy.h"
#include "tests/runtimes/session_fixture.h"

namespace tandem::cli {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kPixels = 256;
using Picture = std::array<float, kPixels>;

std::vector<Picture> PicturesOf(const DigitPictures& digits) {
  std::vector<Picture> pictures(digits.labels.size());
  EXPECT_EQ(digits.pictures.data.size(), pictures.size() * sizeof(Picture));
  std::memcpy(pictures.data(), digits.pictures.data.view.data(), digits.pictures.data.size());
  return pictures;
}

float Distance(const Picture& a, const Picture& b) {
  float sum = 0;
  for (std::size_t i = 0; i < kPixels; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

TEST(DrawDigits, TheSameSeedDrawsTheSameAndAnotherDoesNot) {
  const DigitPictures once = DrawDigits(50, 7);
  const DigitPictures again = DrawDigits(50, 7);
  const DigitPictures other = DrawDigits(50, 8);
  EXPECT_THAT(once.pictures.shape, ElementsAre(50, 1, 16, 16));
  EXPECT_EQ(once.labels, again.labels);
  EXPECT_EQ(PicturesOf(once), PicturesOf(again));
  EXPECT_NE(once.labels, other.labels);
  EXPECT_NE(PicturesOf(once), PicturesOf(other));
}

TEST(DrawDigits, DrawsAllDigitsInGreyAndNoTwoAlike) {
  const DigitPictures digits = DrawDigits(300, 1);
  EXPECT_THAT(std::set<std::int64_t>(digits.labels.begin(), digits.labels.end()),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  const std::vector<Picture> pictures = PicturesOf(digits);
  EXPECT_EQ(std::set<Picture>(pictures.begin(), pictures.end()).size(), pictures.size());
  for (const Picture& picture : pictures) {
    const auto [darkest, brightest] = std::ranges::minmax(picture);
    EXPECT_GE(darkest, 0);
    EXPECT_LE(brightest, 1);
    EXPECT_GT(brightest - darkest, 0.3F);
  }
}

// Even the plainest of classifiers, the nearest mean, tells most of them; nothing would tell pictures without a digit.
TEST(DrawDigits, DigitsCanBeToldApart) {
  const DigitPictures known = DrawDigits(2000, 1);
  const DigitPictures asked = DrawDigits(500, 2);
  std::array<Picture, 10> means{};
  std::array<float, 10> counts{};
  const std::vector<Picture> known_pictures = PicturesOf(known);
  for (std::size_t i = 0; i < known_pictures.size(); ++i) {
    const auto label = static_cast<std::size_t>(known.labels[i]);
    counts[label] += 1;
    for (std::size_t p = 0; p < kPixels; ++p) means[label][p] += known_pictures[i][p];
  }
  for (std::size_t c = 0; c < means.size(); ++c) {
    for (float& pixel : means[c]) pixel /= counts[c];
  }
  const std::vector<Picture> pictures = PicturesOf(asked);
  int right = 0;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const auto nearest = std::ranges::min_element(
        means, [&](const Picture& a, const Picture& b) { return Distance(a, pictures[i]) < Distance(b, pictures[i]); });
    if (nearest - means.begin() == asked.labels[i]) ++right;
  }
  EXPECT_GT(right, 200);  // By chance it would be 50.
}

TEST(WriteDigits, WritesWhatATrainingJobReads) {
  const TempFolder folder;
  const DigitPictures digits = DrawDigits(20, 3);
  ASSERT_TRUE(WriteDigits(digits, folder.path() / "digits.npz"));
  const auto arrays = ReadNpz(folder.path() / "digits.npz");
  ASSERT_TRUE(arrays) << arrays.error().message;
  ASSERT_EQ(arrays->size(), 2U);
  EXPECT_EQ((*arrays)[0].name, "x");
  EXPECT_THAT((*arrays)[0].shape, ElementsAre(20, 1, 16, 16));
  EXPECT_EQ((*arrays)[1].name, "y");
  EXPECT_EQ(Values<std::int64_t>((*arrays)[1]), digits.labels);
}

class DigitsModel : public SessionTest {};

TEST_F(DigitsModel, RunsAndKnowsNothingYet) {
  const SessionSpec spec{.name = kDigitsModel, .model = folder_.path() / "model.onnx"};
  fakes::WriteFile(spec.model, UntrainedDigitsModel(3));
  const auto session = TryLoad(spec);
  ASSERT_TRUE(session) << session.error().message;
  const DigitPictures digits = DrawDigits(500, 2);
  const Tensor scores = Compute(**session, {digits.pictures}, "scores");
  ASSERT_THAT(scores.shape, ElementsAre(500, 10));
  const std::vector<float> values = Values<float>(scores);
  int right = 0;
  for (std::size_t i = 0; i < digits.labels.size(); ++i) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(10 * i);
    if (std::max_element(first, first + 10) - first == digits.labels[i]) ++right;
  }
  EXPECT_LT(right, 150);
}

TEST(UntrainedDigitsModel, IsTheSameForTheSameSeed) {
  EXPECT_EQ(UntrainedDigitsModel(3), UntrainedDigitsModel(3));
  EXPECT_NE(UntrainedDigitsModel(3), UntrainedDigitsModel(4));
}

}  // namespace
}  // namespace tandem::cli
