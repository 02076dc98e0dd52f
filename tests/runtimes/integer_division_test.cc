#include "runtimes/onnx/integer_division.h"

#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <signal.h>

#include "tests/runtimes/session_fixture.h"

namespace tandem {
namespace {

using fakes::OnnxModel;
using fakes::OnnxTensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::optional<DivideInstruction> Decode(std::vector<std::uint8_t> code) {
  return DecodeDivide(code);
}

TEST(DivideDecoder, ReadsEveryFormOfTheOperand) {
  using I = DivideInstruction;
  EXPECT_EQ(Decode({0xF7, 0xF9}), (I{2, 4}));                                       // idiv ecx
  EXPECT_EQ(Decode({0xF7, 0xF1}), (I{2, 4}));                                       // div ecx
  EXPECT_EQ(Decode({0xF6, 0xF9}), (I{2, 1}));                                       // idiv cl
  EXPECT_EQ(Decode({0x66, 0xF7, 0xF9}), (I{3, 2}));                                 // idiv cx
  EXPECT_EQ(Decode({0x48, 0xF7, 0xF9}), (I{3, 8}));                                 // idiv rcx
  EXPECT_EQ(Decode({0x49, 0xF7, 0xF8}), (I{3, 8}));                                 // idiv r8
  EXPECT_EQ(Decode({0x66, 0x41, 0xF7, 0xF8}), (I{4, 2}));                           // idiv r8w
  EXPECT_EQ(Decode({0x66, 0x48, 0xF7, 0xF9}), (I{4, 8}));                           // REX.W wins over 66
  EXPECT_EQ(Decode({0x40, 0xF6, 0xFE}), (I{3, 1}));                                 // idiv sil
  EXPECT_EQ(Decode({0xF7, 0x39}), (I{2, 4}));                                       // idiv [rcx]
  EXPECT_EQ(Decode({0xF7, 0x79, 0x08}), (I{3, 4}));                                 // idiv [rcx+8]
  EXPECT_EQ(Decode({0xF7, 0xB9, 0, 1, 0, 0}), (I{6, 4}));                           // idiv [rcx+256]
  EXPECT_EQ(Decode({0xF7, 0x3C, 0x8E}), (I{3, 4}));                                 // idiv [rsi+rcx*4]
  EXPECT_EQ(Decode({0xF7, 0x7C, 0x8E, 0x10}), (I{4, 4}));                           // idiv [rsi+rcx*4+16]
  EXPECT_EQ(Decode({0xF7, 0xBC, 0x8E, 0, 1, 0, 0}), (I{7, 4}));                     // idiv [rsi+rcx*4+256]
  EXPECT_EQ(Decode({0xF7, 0x3C, 0x8D, 0, 0, 0, 0}), (I{7, 4}));                     // idiv [rcx*4+0]
  EXPECT_EQ(Decode({0xF7, 0x7C, 0x8D, 0}), (I{4, 4}));                              // idiv [rbp+rcx*4]
  EXPECT_EQ(Decode({0xF7, 0x3D, 0, 0, 0, 0}), (I{6, 4}));                           // idiv [rip+0]
  EXPECT_EQ(Decode({0x64, 0x67, 0x4B, 0xF7, 0xBC, 0xC1, 0, 1, 0, 0}), (I{10, 8}));  // idiv fs:[r9d+r8d*8+256]
  EXPECT_EQ(Decode({0xF7, 0xF9, 0x90, 0x90}), (I{2, 4}));                           // what follows is not read
}

TEST(DivideDecoder, TakesNothingElse) {
  EXPECT_EQ(Decode({}), std::nullopt);
  EXPECT_EQ(Decode({0xF7}), std::nullopt);
  EXPECT_EQ(Decode({0xF7, 0xE9}), std::nullopt);                         // imul ecx
  EXPECT_EQ(Decode({0xF7, 0xD9}), std::nullopt);                         // neg ecx
  EXPECT_EQ(Decode({0x90, 0xF7, 0xF9}), std::nullopt);                   // nop
  EXPECT_EQ(Decode({0x48, 0x66, 0xF7, 0xF9}), std::nullopt);             // REX before a prefix has no effect
  EXPECT_EQ(Decode({0xF7, 0x3C}), std::nullopt);                         // cut off before the SIB byte
  EXPECT_EQ(Decode({0xF7, 0xB9, 0, 1}), std::nullopt);                   // cut off in the displacement
  EXPECT_EQ(Decode(std::vector<std::uint8_t>(15, 0x66)), std::nullopt);  // prefixes alone
}

#if defined(__x86_64__) && !defined(TANDEM_SANITIZED)
TEST(IntegerDivisionGuard, OtherSignalsOfTheKindStillEndTheProcess) {
  EXPECT_EXIT(
      {
        InstallIntegerDivisionGuard();
        raise(SIGFPE);
        _exit(0);
      },
      ::testing::KilledBySignal(SIGFPE), "");
}
#endif

class IntegerDivisionTest : public SessionTest {
 protected:
  // y = x op z; any rank-1 size.
  static OnnxModel Model(const std::string& op, DataType type) {
    OnnxModel model;
    model.graph.Input("x", type, {"n"}).Input("z", type, {"n"}).Output("y", type, {"n"}).Node(op, {"x", "z"}, {"y"});
    return model;
  }

  template <typename T>
  void ExpectRefused(const std::string& op, DataType type, T x, T z) {
    const auto session = Load(Model(op, type));
    ASSERT_TRUE(session);
    const auto tensors = [&](T left, T right) {
      return std::vector<Tensor>{MakeTensor<T>("x", type, {3}, {left, left, left}),
                                 MakeTensor<T>("z", type, {3}, {1, right, 1})};
    };
    const auto result = Run(*session, tensors(x, z));
    ASSERT_FALSE(result) << op;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(result.error().message, HasSubstr("divided by zero"));
    const auto good = Run(*session, tensors(6, 2));
    ASSERT_TRUE(good) << good.error().message;
    EXPECT_EQ(Values<T>(good->front())[1], op == "Div" ? 3 : 0);
  }
};

#if defined(__x86_64__)
// In C++ a division by zero is undefined; the instruction is not.
int Divide(int dividend, int divisor) {
  int remainder = 0;
  asm volatile("cltd\n\tidivl %2" : "+a"(dividend), "=&d"(remainder) : "r"(divisor) : "cc");
  return dividend;
}

TEST_F(IntegerDivisionTest, ARunThatDividesByZeroFailsAndTheNextOneIsRight) {
  for (const std::string op : {"Div", "Mod"}) {
    ExpectRefused<std::int32_t>(op, DataType::kInt32, 6, 0);
    ExpectRefused<std::int64_t>(op, DataType::kInt64, 6, 0);
  }
  ExpectRefused<std::uint8_t>("Mod", DataType::kUint8, 6, 0);
  ExpectRefused<std::int16_t>("Mod", DataType::kInt16, 6, 0);
  ExpectRefused<std::uint64_t>("Mod", DataType::kUint64, 6, 0);
  ExpectRefused<std::int32_t>("Div", DataType::kInt32, std::numeric_limits<std::int32_t>::min(), -1);
  ExpectRefused<std::int64_t>("Div", DataType::kInt64, std::numeric_limits<std::int64_t>::min(), -1);
}

TEST_F(IntegerDivisionTest, ALargeRunOnThePoolFails) {
  const auto session = Load(Model("Div", DataType::kInt64));
  ASSERT_TRUE(session);
  constexpr std::int64_t kSize = 200'000;
  const std::vector<std::int64_t> zeros(kSize, 0);
  const std::vector<Tensor> inputs = {MakeTensor<std::int64_t>("x", DataType::kInt64, {kSize}, zeros),
                                      MakeTensor<std::int64_t>("z", DataType::kInt64, {kSize}, zeros)};
  const auto result = Run(*session, inputs);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(IntegerDivisionTest, AConstantDividedByZeroIsRefusedAtLoad) {
  OnnxModel model;
  model.graph.Input("x", DataType::kInt64, {1})
      .Output("y", DataType::kInt64, {1})
      .Initializer("a", OnnxTensor::Ints({1}, {1}))
      .Initializer("b", OnnxTensor::Ints({1}, {0}))
      .Node("Div", {"a", "b"}, {"c"})
      .Node("Add", {"x", "c"}, {"y"});
  const auto session = TryLoad(model);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(session.error().message, HasSubstr("divided by zero"));
}

TEST_F(IntegerDivisionTest, StridesOfZeroAreRefusedAtLoad) {
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {1, 1, 4, 4})
      .Output("y", DataType::kFp32, {1, 1, "h", "w"})
      .Initializer("w", OnnxTensor::Floats({1, 1, 1, 1}, {1}))
      .Node("Conv", {"x", "w"}, {"y"}, {{"strides", std::vector<std::int64_t>{0, 0}}});
  const auto session = TryLoad(model);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::kInvalidArgument) << session.error().message;
}

TEST_F(IntegerDivisionTest, AWatchHearsItsOwnThreadAndThoseWithoutAWatch) {
  InstallIntegerDivisionGuard();
  const IntegerDivisionWatch here;
  std::thread watched([] {
    const IntegerDivisionWatch there;
    EXPECT_EQ(Divide(1, 0), 0);
    EXPECT_TRUE(there.faulted());
  });
  watched.join();
  EXPECT_FALSE(here.faulted());
  std::thread([] { EXPECT_EQ(Divide(1, 0), 0); }).join();
  EXPECT_TRUE(here.faulted());
  const IntegerDivisionWatch later;
  EXPECT_FALSE(later.faulted());
  EXPECT_EQ(Divide(1, 0), 0);
  EXPECT_TRUE(later.faulted());
}
#endif

}  // namespace
}  // namespace tandem
