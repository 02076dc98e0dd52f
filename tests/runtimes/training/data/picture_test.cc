#include "runtimes/training/data/picture.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/runtimes/training/data/data_files.h"

namespace tandem::training {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kMost = 1 << 20;

// Colours that differ everywhere, and softly, so that JPEG keeps them.
Picture Gradient(int width, int height, int channels) {
  Picture picture{.width = width, .height = height, .channels = channels, .pixels = {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c)
        picture.pixels.push_back(static_cast<std::uint8_t>(40 + 3 * x + 2 * y + 20 * c));
    }
  }
  return picture;
}

int FarthestApart(const Picture& a, const Picture& b) {
  int most = a.pixels.size() == b.pixels.size() ? 0 : 1000;
  for (std::size_t i = 0; i < a.pixels.size() && most < 1000; ++i) {
    most = std::max(most, std::abs(a.pixels[i] - b.pixels[i]));
  }
  return most;
}

std::string Why(const std::string& file, std::int64_t most = kMost) {
  const auto picture = DecodePicture(file, 3, most, "p");
  return picture ? "it was decoded" : picture.error().message;
}

TEST(Picture, OfAPngIsExact) {
  const Picture colours = Gradient(20, 10, 3), grey = Gradient(20, 10, 1);
  EXPECT_EQ(DecodePicture(Png(colours), 3, kMost, "p")->pixels, colours.pixels);
  EXPECT_EQ(DecodePicture(Png(grey), 1, kMost, "p")->pixels, grey.pixels);
  // Alpha is dropped, not mixed in.
  EXPECT_EQ(DecodePicture(PngWithAlpha(colours, 7), 3, kMost, "p")->pixels, colours.pixels);
}

TEST(Picture, OfAJpegIsClose) {
  const Picture colours = Gradient(20, 10, 3), grey = Gradient(20, 10, 1);
  for (const bool progressive : {false, true}) {
    const auto decoded = DecodePicture(Jpeg(colours, 98, progressive), 3, kMost, "p");
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_LE(FarthestApart(*decoded, colours), 8);
    EXPECT_LE(FarthestApart(*DecodePicture(Jpeg(grey, 98, progressive), 1, kMost, "p"), grey), 4);
  }
}

TEST(Picture, HasTheChannelsAskedFor) {
  const Picture red = Plain(8, 8, {255, 0, 0}), grey = Plain(8, 8, {100});
  EXPECT_THAT(DecodePicture(Png(red), 1, kMost, "p")->pixels, Each(76));
  EXPECT_THAT(DecodePicture(Jpeg(red), 1, kMost, "p")->pixels,
              Each(::testing::AllOf(::testing::Ge(75), ::testing::Le(77))));
  for (const std::string& file : {Png(grey), Jpeg(grey)}) {
    const auto colours = DecodePicture(file, 3, kMost, "p");
    EXPECT_EQ(colours->channels, 3);
    EXPECT_EQ(colours->pixels, std::vector<std::uint8_t>(8 * 8 * 3, 100));
  }
}

TEST(Picture, OfInkBecomesColours) {
  // Full cyan, as Adobe does not write it: nothing red is left.
  const auto cyan = DecodePicture(Jpeg(Plain(8, 8, {255, 0, 0, 0}), 100), 3, kMost, "p");
  ASSERT_TRUE(cyan) << cyan.error().message;
  EXPECT_EQ(cyan->channels, 3);
  // libjpeg marks what it writes as Adobe's, whose values are inverted.
  EXPECT_THAT(std::vector<int>(cyan->pixels.begin(), cyan->pixels.begin() + 3), ElementsAre(0, 0, 0));
  const auto white = DecodePicture(Jpeg(Plain(8, 8, {255, 255, 255, 255}), 100), 3, kMost, "p");
  EXPECT_THAT(white->pixels, Each(255));
}

TEST(Picture, CutAnywhereIsAnErrorThatNamesTheFile) {
  const Picture picture = Gradient(64, 48, 3);
  for (const std::string& whole : {Png(picture), Jpeg(picture), Jpeg(picture, 90, true)}) {
    // The last 12 bytes of a PNG file only say that it ends.
    for (std::size_t size = 0; size + 12 < whole.size(); size += 7) {
      EXPECT_THAT(Why(whole.substr(0, size)), AllOf(HasSubstr("'p'"), ::testing::Not(HasSubstr("decoded"))))
          << size << " of " << whole.size();
    }
  }
}

TEST(Picture, MayBeFollowedByOtherThings) {
  EXPECT_TRUE(DecodePicture(Jpeg(Gradient(64, 48, 3)) + "more", 3, kMost, "p"));
  EXPECT_TRUE(DecodePicture(Png(Gradient(64, 48, 3)) + "more", 3, kMost, "p"));
}

TEST(Picture, ChangedAnywhereEndsWell) {
  const Picture picture = Gradient(24, 16, 3);
  for (const std::string& whole : {Png(picture), Jpeg(picture), Jpeg(picture, 90, true)}) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const char flip : {'\x01', '\x80', '\xff'}) {
        std::string changed = whole;
        changed[i] = static_cast<char>(changed[i] ^ flip);
        (void)DecodePicture(changed, 3, kMost, "p");
      }
    }
  }
}

TEST(Picture, OfAnythingElseIsRefused) {
  EXPECT_THAT(Why(""), HasSubstr("neither a JPEG nor a PNG"));
  EXPECT_THAT(Why("GIF89a"), HasSubstr("neither a JPEG nor a PNG"));
  EXPECT_THAT(Why("\xff\xd8\xff"), HasSubstr("broken JPEG"));
  EXPECT_THAT(Why(std::string("\x89PNG\r\n\x1a\n", 8)), HasSubstr("broken PNG"));
}

TEST(Picture, LargerThanTheLimitIsNotDecoded) {
  const Picture picture = Plain(100, 100, {1, 2, 3});
  for (const std::string& file : {Png(picture), Jpeg(picture)}) {
    const auto refused = DecodePicture(file, 3, 9'999, "p");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
    EXPECT_THAT(refused.error().message, HasSubstr("100x100"));
    EXPECT_TRUE(DecodePicture(file, 3, 10'000, "p"));
  }
}

TEST(Picture, ThatClaimsAnAbsurdOrNoSizeIsRefused) {
  std::string jpeg = Jpeg(Plain(8, 8, {1, 2, 3}));
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  std::string huge = jpeg, none = jpeg;
  huge.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  none.replace(frame + 7, 2, std::string(2, '\0'));
  EXPECT_THAT(Why(huge), HasSubstr("65500x65500"));
  EXPECT_THAT(Why(none), HasSubstr("broken JPEG"));
  std::string png = Png(Plain(8, 8, {1, 2, 3}));
  png.replace(16, 4, std::string(4, '\0'));
  EXPECT_THAT(Why(png), HasSubstr("broken PNG"));
}

TEST(Resize, KeepsWhatIsPlain) {
  for (const auto& [width, height] : {std::pair{1, 1}, {3, 50}, {17, 16}, {200, 9}}) {
    const Picture resized = Resize(Plain(16, 16, {10, 200, 255}), width, height);
    EXPECT_EQ(resized.pixels, Plain(width, height, {10, 200, 255}).pixels);
  }
}

TEST(Resize, AveragesWhenItShrinks) {
  // By hand: the triangle over half the row weighs 3/7, 3/7, 1/7.
  const Picture row{.width = 4, .height = 1, .channels = 1, .pixels = {0, 100, 200, 255}};
  EXPECT_THAT(Resize(row, 2, 1).pixels, ElementsAre(71, 209));
  const Picture column{.width = 1, .height = 4, .channels = 1, .pixels = {0, 100, 200, 255}};
  EXPECT_THAT(Resize(column, 1, 2).pixels, ElementsAre(71, 209));
}

TEST(Resize, InterpolatesWhenItGrows) {
  const Picture row{.width = 2, .height = 1, .channels = 1, .pixels = {0, 100}};
  EXPECT_THAT(Resize(row, 4, 1).pixels, ElementsAre(0, 25, 75, 100));
}

RC_GTEST_PROP(Resize, StaysWithinTheRangeOfItsPixels, ()) {
  const int width = *rc::gen::inRange(1, 40), height = *rc::gen::inRange(1, 40);
  Picture picture{.width = width, .height = height, .channels = 1, .pixels = {}};
  for (int i = 0; i < width * height; ++i)
    picture.pixels.push_back(static_cast<std::uint8_t>(*rc::gen::inRange(50, 60)));
  const Picture resized = Resize(picture, *rc::gen::inRange(1, 60), *rc::gen::inRange(1, 60));
  for (const std::uint8_t pixel : resized.pixels) RC_ASSERT(pixel >= 50 && pixel < 60);
}

}  // namespace
}  // namespace tandem::training
