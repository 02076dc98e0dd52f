#include "runtimes/onnx/onnx_file.h"

#include <memory>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/fakes/onnx_writer.h"
#include "tests/runtimes/session_fixture.h"

namespace tandem {
namespace {

using fakes::OnnxGraph;
using fakes::OnnxModel;
using fakes::OnnxTensor;
using fakes::WireBytes;
using fakes::WireNumber;
using ::testing::HasSubstr;

class OnnxFileTest : public ::testing::Test {
 protected:
  Result<OnnxFileInfo> Inspect(const std::string& bytes) {
    std::filesystem::remove(file_);  // Overwriting in place would wait for the disk.
    fakes::WriteFile(file_, bytes);
    return InspectOnnxFile(file_);
  }

  std::string Refusal(const std::string& bytes) {
    const auto info = Inspect(bytes);
    if (info) return "accepted";
    EXPECT_EQ(info.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(info.error().message, HasSubstr(file_.string()));
    return info.error().message;
  }

  static std::string ModelWith(const std::string& graph) {
    return WireNumber(1, 8) + WireBytes(7, graph) + WireBytes(8, WireNumber(2, 17));
  }

  // A TensorProto with external data.
  static std::string External(const std::string& location, const std::string& more = "") {
    return WireNumber(1, 4) + WireNumber(2, 1) + WireBytes(8, "w") +
           WireBytes(13, WireBytes(1, "location") + WireBytes(2, location)) + more + WireNumber(14, 1);
  }

  TempFolder folder_;
  std::filesystem::path file_ = folder_.path() / "model.onnx";
};

TEST_F(OnnxFileTest, TellsWhatTheModelSaysAboutItself) {
  const auto info = Inspect(fakes::MlpModel().Serialize());
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->ir_version, 8);
  ASSERT_EQ(info->opsets.size(), 1U);
  EXPECT_EQ(info->opsets[0].version, 17);
  EXPECT_EQ(info->producer, "tandem-tests");
  EXPECT_EQ(info->graph_name, "graph");
  EXPECT_EQ(info->tensor_bytes, 4U * (2 * 64 * 64 + 2 * 64));
  EXPECT_TRUE(info->variable_inputs);
  EXPECT_TRUE(info->external.empty());
  EXPECT_EQ(info->nodes, 3U);
  EXPECT_FALSE(info->has_subgraphs);
  EXPECT_TRUE(Inspect(fakes::SlowModel().Serialize())->has_subgraphs);
}

TEST_F(OnnxFileTest, KnowsModelsWithoutVariableInputs) {
  const auto info = Inspect(fakes::IdentityModel(DataType::kFp32, {2, 3}).Serialize());
  ASSERT_TRUE(info);
  EXPECT_FALSE(info->variable_inputs);
}

TEST_F(OnnxFileTest, FilesThatAreNoModelAreRefusedWithAReason) {
  EXPECT_THAT(Refusal(""), HasSubstr("empty"));
  EXPECT_THAT(Refusal("hello, I am a text file\n"), HasSubstr("not a valid ONNX model"));
  EXPECT_THAT(Refusal(std::string(1000, '\0')), HasSubstr("byte 0"));
  EXPECT_THAT(Refusal(WireBytes(2, "producer")), HasSubstr("IR version"));
  EXPECT_THAT(Refusal(WireNumber(1, 8)), HasSubstr("no graph"));
  EXPECT_THAT(Refusal(WireNumber(1, 8) + WireBytes(7, "")), HasSubstr("operator set"));
  EXPECT_THAT(Refusal(WireNumber(1, 0) + WireBytes(7, "") + WireBytes(8, "")), HasSubstr("IR version"));
}

TEST_F(OnnxFileTest, MissingAndSpecialFilesAreRefused) {
  const auto missing = InspectOnnxFile(file_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  const auto folder = InspectOnnxFile(folder_.path());
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("not a regular file"));
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const auto fifo = InspectOnnxFile(file_);
  ASSERT_FALSE(fifo);
  EXPECT_THAT(fifo.error().message, HasSubstr("not a regular file"));
}

TEST_F(OnnxFileTest, ATruncatedModelIsRefusedWhereverItEnds) {
  const std::string whole = fakes::AddModel().Serialize();
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(Inspect(whole.substr(0, size))) << size;
}

TEST_F(OnnxFileTest, FindsExternalDataWhereverItHides) {
  const std::string tensor = External("w.bin");
  const std::string attribute_tensor = WireBytes(5, WireBytes(5, tensor));
  const std::string subgraph = WireBytes(5, WireBytes(6, WireBytes(5, tensor)));
  const std::pair<const char*, std::string> places[] = {
      {"initializer", ModelWith(WireBytes(5, tensor))},
      {"attribute t", ModelWith(WireBytes(1, attribute_tensor))},
      {"attribute tensors", ModelWith(WireBytes(1, WireBytes(5, WireBytes(10, tensor))))},
      {"attribute g", ModelWith(WireBytes(1, subgraph))},
      {"attribute graphs", ModelWith(WireBytes(1, WireBytes(5, WireBytes(11, WireBytes(5, tensor)))))},
      {"nested subgraph", ModelWith(WireBytes(1, WireBytes(5, WireBytes(6, WireBytes(1, subgraph)))))},
      {"function node", ModelWith("") + WireBytes(25, WireBytes(7, attribute_tensor))},
      {"function attribute", ModelWith("") + WireBytes(25, WireBytes(11, WireBytes(5, tensor)))},
      {"training initialization", ModelWith("") + WireBytes(20, WireBytes(1, WireBytes(5, tensor)))},
      {"training algorithm", ModelWith("") + WireBytes(20, WireBytes(2, WireBytes(5, tensor)))},
  };
  for (const auto& [place, bytes] : places) {
    SCOPED_TRACE(place);
    const auto info = Inspect(bytes);
    ASSERT_TRUE(info) << info.error().message;
    ASSERT_EQ(info->external.size(), 1U);
    EXPECT_EQ(info->external[0].location, "w.bin");
    EXPECT_EQ(info->external[0].byte_size, 16U);
    EXPECT_EQ(info->external[0].place == TensorPlace::kMainGraph, std::string(place) == "initializer");
  }
}

TEST_F(OnnxFileTest, KnowsInputsThatSayNothingOfTheirShape) {
  const std::string floats = WireNumber(1, 1);
  const auto input = [&](const std::string& name, const std::string& shape) {
    return WireBytes(11, WireBytes(1, name) + WireBytes(2, WireBytes(1, floats + shape)));
  };
  const auto info = Inspect(ModelWith(input("any", "") + input("scalar", WireBytes(2, "")) +
                                      input("row", WireBytes(2, WireBytes(1, WireNumber(1, 4)))) + input("other", "")));
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->unranked_inputs, (std::unordered_set<std::string>{"any", "other"}));
}

TEST_F(OnnxFileTest, KnowsModelsThatTreatEachElementByItself) {
  EXPECT_TRUE(Inspect(fakes::AddModel().Serialize())->elementwise);
  EXPECT_TRUE(Inspect(fakes::IdentityModel(DataType::kBytes).Serialize())->elementwise);
  EXPECT_FALSE(Inspect(fakes::MlpModel().Serialize())->elementwise);
  OnnxModel foreign = fakes::AddModel();
  foreign.graph.Node("Relu", {"sum"}, {"z"}, {}, "com.example");
  EXPECT_FALSE(Inspect(foreign.Serialize())->elementwise);
}

TEST_F(OnnxFileTest, IndicesThatNobodyChecksMustNotComeFromTheRequest) {
  const auto model = [](bool from_request, const char* op, std::size_t place) {
    OnnxModel model;
    model.graph.Input("x", DataType::kFp32, {"n", 4}).Output("y", DataType::kFp32, {"n", 4});
    model.graph.Input("where", DataType::kInt64, {1});
    if (!from_request) model.graph.Initializer("where", OnnxTensor::Ints({1}, {0}));
    model.graph.Initializer("weight", OnnxTensor::Ints({1}, {0}));
    std::vector<std::string> inputs(3, "weight");
    inputs[place] = "where";
    model.graph.Node(op, inputs, {"y"});
    return model.Serialize();
  };
  for (const auto& [op, place] : {std::pair{"MaxUnpool", 1u}, {"RoiAlign", 2u}, {"Trilu", 1u}}) {
    const auto info = Inspect(model(true, op, place));
    ASSERT_FALSE(info) << op;
    EXPECT_EQ(info.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(info.error().message, HasSubstr(op));
    EXPECT_THAT(info.error().message, HasSubstr("'where'"));
    EXPECT_TRUE(Inspect(model(false, op, place))) << op;
    EXPECT_TRUE(Inspect(model(true, op, 0))) << op;
  }
  EXPECT_TRUE(Inspect(model(true, "Gather", 1)));
}

TEST_F(OnnxFileTest, SparseTensorsAreUnsupported) {
  const std::string sparse = WireBytes(1, WireNumber(1, 1) + WireNumber(2, 1) + WireBytes(9, "1234"));
  for (const std::string& graph : {WireBytes(15, sparse), WireBytes(1, WireBytes(5, WireBytes(22, sparse))),
                                   WireBytes(1, WireBytes(5, WireBytes(23, sparse)))}) {
    const auto info = Inspect(ModelWith(graph));
    ASSERT_FALSE(info);
    EXPECT_EQ(info.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(info.error().message, HasSubstr("sparse"));
  }
}

TEST_F(OnnxFileTest, DataThatDoesNotFillItsShapeIsRefused) {
  const auto tensor = [](std::uint64_t elements, std::uint64_t type, const std::string& data) {
    return ModelWith(WireBytes(5, WireNumber(1, elements) + WireNumber(2, type) + WireBytes(8, "w") + data));
  };
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40;
  for (const std::uint64_t type : {1, 2, 6, 7, 8, 10, 11, 13, 14, 21}) {
    EXPECT_THAT(Refusal(tensor(kMany, type, "")), HasSubstr("tensor 'w'")) << type;
    EXPECT_TRUE(Inspect(tensor(0, type, ""))) << type;
  }
  const std::string eight(8, '\1');
  EXPECT_TRUE(Inspect(tensor(2, 1, WireBytes(9, eight))));
  EXPECT_THAT(Refusal(tensor(3, 1, WireBytes(9, eight))), HasSubstr("12 bytes"));
  EXPECT_TRUE(Inspect(tensor(2, 1, WireBytes(4, eight))));  // float_data, packed
  EXPECT_THAT(Refusal(tensor(1, 1, WireBytes(4, eight))), HasSubstr("but 2"));
  EXPECT_TRUE(Inspect(tensor(1, 14, WireBytes(4, eight))));   // complex64
  EXPECT_TRUE(Inspect(tensor(8, 9, WireBytes(5, eight))));    // bool in int32_data
  EXPECT_TRUE(Inspect(tensor(16, 21, WireBytes(5, eight))));  // uint4, two in each
  EXPECT_TRUE(Inspect(tensor(2, 7, WireNumber(7, 300) + WireBytes(7, fakes::WireVarint(1'000'000)))));
  EXPECT_TRUE(Inspect(tensor(1, 11, WireBytes(10, eight))));  // double_data
  EXPECT_TRUE(Inspect(tensor(8, 12, WireBytes(11, eight))));  // uint32 in uint64_data
  EXPECT_TRUE(Inspect(tensor(2, 8, WireBytes(6, "a") + WireBytes(6, ""))));
  EXPECT_THAT(Refusal(tensor(3, 8, WireBytes(6, "a") + WireBytes(6, ""))), HasSubstr("but 2"));
}

TEST_F(OnnxFileTest, FunctionsThatGrowWithoutBoundAreRefused) {
  const auto node = [](const std::string& op) { return WireBytes(4, op) + WireBytes(7, "local"); };
  const auto function = [&](const std::string& name, const std::vector<std::string>& calls) {
    std::string body = WireBytes(1, name) + WireBytes(10, "local");
    for (const std::string& call : calls) body += WireBytes(7, node(call));
    return WireBytes(25, body);
  };
  const std::string main = ModelWith(WireBytes(1, node("f0")));
  EXPECT_TRUE(Inspect(main + function("f0", {"f1", "f1"}) + function("f1", {"Relu"})));
  EXPECT_THAT(Refusal(main + function("f0", {"f0"})), HasSubstr("'local:f0' calls itself"));
  EXPECT_THAT(Refusal(main + function("f0", {"f1"}) + function("f1", {"f0"})), HasSubstr("calls itself"));
  const std::string in_subgraph =
      WireBytes(25, WireBytes(1, "f0") + WireBytes(10, "local") +
                        WireBytes(7, WireBytes(4, "If") + WireBytes(5, WireBytes(6, WireBytes(1, node("f0"))))));
  EXPECT_THAT(Refusal(main + in_subgraph), HasSubstr("calls itself"));
  std::string doubling = main;
  for (int i = 0; i < 40; ++i) {
    const std::string next = "f" + std::to_string(i + 1);
    doubling += function("f" + std::to_string(i), {next, next});
  }
  EXPECT_THAT(Refusal(doubling), HasSubstr("1000000 nodes"));
  std::string deep = main;
  for (int i = 0; i < 10'000; ++i) deep += function("f" + std::to_string(i), {"f" + std::to_string(i + 1)});
  EXPECT_THAT(Refusal(deep), HasSubstr("64 deep"));
}

TEST_F(OnnxFileTest, MorePartsThanAnyModelHasAreRefused) {
  const auto many = [](std::uint32_t field, int count) {
    std::string graph;
    const std::string empty = WireBytes(field, "");
    for (int i = 0; i < count; ++i) graph += empty;
    return graph;
  };
  EXPECT_THAT(Refusal(ModelWith(many(1, 1'000'001))), HasSubstr("1000000 nodes"));
  EXPECT_THAT(Refusal(ModelWith(WireBytes(13, WireBytes(2, WireBytes(1, WireBytes(2, many(1, 16'000'001))))))),
              HasSubstr("parts"));
}

TEST_F(OnnxFileTest, NamesThatAreNotUtf8AreRefused) {
  EXPECT_THAT(Refusal(ModelWith(WireBytes(11, WireBytes(1, "x\xFF")))), HasSubstr("UTF-8"));
  EXPECT_THAT(Refusal(ModelWith(WireBytes(12, WireBytes(1, "\xC0\x80")))), HasSubstr("UTF-8"));
  EXPECT_TRUE(Inspect(ModelWith(WireBytes(11, WireBytes(1, "größe")))));
}

TEST_F(OnnxFileTest, HalvesThatProtobufWouldMergeAreRefused) {
  const std::string tensor = External("w.bin");
  EXPECT_THAT(Refusal(ModelWith("") + WireBytes(7, "")), HasSubstr("occurs twice"));
  EXPECT_THAT(Refusal(ModelWith(WireBytes(1, WireBytes(5, WireBytes(5, "") + WireBytes(5, tensor))))),
              HasSubstr("occurs twice"));
}

TEST_F(OnnxFileTest, SenselessExternalDataIsRefused) {
  const auto entry = [](const std::string& key, const std::string& value) {
    return WireBytes(13, WireBytes(1, key) + WireBytes(2, value));
  };
  const auto refusal = [&](const std::string& tensor) { return Refusal(ModelWith(WireBytes(5, tensor))); };
  EXPECT_THAT(refusal(WireNumber(14, 1)), HasSubstr("without a location"));
  EXPECT_THAT(refusal(External("a", entry("location", "b"))), HasSubstr("two locations"));
  EXPECT_THAT(refusal(External("a", entry("offset", "-1"))), HasSubstr("'-1'"));
  EXPECT_THAT(refusal(External("a", entry("offset", "9223372036854775808"))), HasSubstr("not a number of bytes"));
  EXPECT_THAT(refusal(External("a", entry("length", "12x"))), HasSubstr("'12x'"));
  EXPECT_THAT(refusal(External(std::string(5000, 'a'))), HasSubstr("5000 bytes"));
  const auto prepacked = Inspect(ModelWith(WireBytes(5, External("a", entry("prepacked_0", "k|0|16")))));
  ASSERT_FALSE(prepacked);
  EXPECT_EQ(prepacked.error().code, ErrorCode::kUnsupported);
}

TEST_F(OnnxFileTest, ImpossibleShapesAreRefused) {
  const auto tensor = [](std::uint64_t a, std::uint64_t b) {
    return WireBytes(5, WireNumber(1, a) + WireNumber(1, b) + WireNumber(2, 1));
  };
  EXPECT_NE(Refusal(ModelWith(tensor(static_cast<std::uint64_t>(-1), 2))), "accepted");
  EXPECT_NE(Refusal(ModelWith(tensor(std::uint64_t{1} << 62, 4))), "accepted");
  EXPECT_NE(Refusal(ModelWith(tensor(std::uint64_t{1} << 61, 1))), "accepted");
}

TEST_F(OnnxFileTest, DeeplyNestedGraphsAreRefused) {
  const auto nested = [](int depth) {
    std::string graph;
    for (int i = 0; i < depth; ++i) graph = WireBytes(1, WireBytes(5, WireBytes(6, graph)));
    return ModelWith(graph);
  };
  EXPECT_TRUE(Inspect(nested(30)));
  EXPECT_THAT(Refusal(nested(40)), HasSubstr("nested"));
  EXPECT_THAT(Refusal(nested(2'000)), HasSubstr("nested"));
}

TEST_F(OnnxFileTest, MutatedFilesNeverCrash) {
  std::mt19937 random(42);
  OnnxModel external;
  external.graph.Initializer("w", DataType::kFp32, {4}, {.location = "weights.bin", .offset = 4, .length = 16});
  const std::string seeds[] = {fakes::OptionalInputModel().Serialize(), fakes::SlowModel().Serialize().substr(0, 400),
                               external.Serialize(), fakes::AddModel().Serialize()};
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = seeds[random() % std::size(seeds)];
    for (unsigned changes = 1 + random() % 6; changes > 0 && !bytes.empty(); --changes) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, random() % 8); break;
        case 2: bytes.insert(at, std::string(random() % 12, static_cast<char>(random()))); break;
        default: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
      }
    }
    const auto info = Inspect(bytes);
    EXPECT_TRUE(info || !info.error().message.empty());
  }
}

}  // namespace
}  // namespace tandem
