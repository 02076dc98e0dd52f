#include "colocation/model_bits.h"

#include <set>

#include <gtest/gtest.h>

#include "api/base/format.h"

namespace tandem {
namespace {

TEST(ModelBits, AModelKeepsABitOfItsOwn) {
  ModelBits bits;
  const ModelBit a = bits.BitOf("a");
  const ModelBit b = bits.BitOf("b");
  EXPECT_NE(a, kAnyModel);
  EXPECT_NE(b, kAnyModel);
  EXPECT_EQ(SetOf(a) & SetOf(b), 0U);
  EXPECT_EQ(bits.BitOf("a"), a);
}

TEST(ModelBits, ThoseForWhomThereIsNoBitAnyMoreStandForAllModels) {
  ModelBits bits;
  std::set<ModelBit> given;
  for (std::size_t i = 1; i < kModelBits; ++i) given.insert(bits.BitOf(Format("m{}", i)));
  EXPECT_EQ(given.size(), kModelBits - 1);
  EXPECT_FALSE(given.contains(kAnyModel));
  EXPECT_EQ(bits.BitOf("one more"), kAnyModel);
  EXPECT_EQ(SetOf(bits.BitOf("and one more")), kEveryModel);
  EXPECT_EQ(bits.BitOf("m1"), *given.begin()) << "who has one keeps it";
}

}  // namespace
}  // namespace tandem
