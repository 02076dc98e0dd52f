#include "server/lifecycle/serve_options.h"

#include <cstdlib>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::HasSubstr;

ServeOptions Parse(std::vector<std::string> arguments) {
  CLI::App app;
  ServeOptions options;
  AddServeFlags(app, options);
  std::ranges::reverse(arguments);
  app.parse(arguments);
  return options;
}

TEST(ServeOptions, TakesTritonsFlags) {
  const ServeOptions o = Parse({"--model-repository=/a", "--model-repository", "/b", "--model-control-mode=explicit",
                                "--load-model=x", "--load-model=y", "--http-port", "9000", "--exit-on-error", "true",
                                "--allow-metrics=false", "--repository-poll-secs", "3"});
  EXPECT_EQ(o.model_repository, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(o.load_model, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(o.http_port, 9000);
  EXPECT_TRUE(o.exit_on_error);
  EXPECT_FALSE(o.allow_metrics);
  EXPECT_TRUE(CheckServeOptions(o));
}

TEST(ServeOptions, RefusesWhatMakesNoSense) {
  EXPECT_THROW(Parse({}), CLI::ParseError);
  EXPECT_THROW(Parse({"--model-repository=/a", "--http-port=65536"}), CLI::ParseError);
  EXPECT_THROW(Parse({"--model-repository=/a", "--http-port=x"}), CLI::ParseError);
  EXPECT_THROW(Parse({"--model-repository=/a", "--model-control-mode=sometimes"}), CLI::ParseError);
  EXPECT_THROW(Parse({"--model-repository=/a", "--no-such-flag=1"}), CLI::ParseError);
}

TEST(ServeOptions, ReadsTheEnvironmentBelowTheFlags) {
  ::setenv("TANDEM_GRPC_PORT", "9001", 1);
  EXPECT_EQ(Parse({"--model-repository=/a"}).grpc_port, 9001);
  EXPECT_EQ(Parse({"--model-repository=/a", "--grpc-port=9002"}).grpc_port, 9002);
  ::unsetenv("TANDEM_GRPC_PORT");
}

TEST(ServeOptions, DoesNotOfferItselfToANetworkUnprotected) {
  ServeOptions o = Parse({"--model-repository=/a", "--http-address=0.0.0.0"});
  const auto refused = CheckServeOptions(o);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("--token-file"));
  o.token_file = "tokens";
  EXPECT_TRUE(CheckServeOptions(o));
  o.token_file.clear();
  o.insecure = true;
  EXPECT_TRUE(CheckServeOptions(o));
}

TEST(ServeOptions, NamesFlagsThatGoTogether) {
  ServeOptions o = Parse({"--model-repository=/a"});
  o.tls_cert = "cert.pem";
  EXPECT_THAT(CheckServeOptions(o).error().message, HasSubstr("--tls-key"));
  o = Parse({"--model-repository=/a", "--load-model=x"});
  EXPECT_THAT(CheckServeOptions(o).error().message, HasSubstr("explicit"));
  o = Parse({"--model-repository=/a", "--http-address=localhost"});
  EXPECT_THAT(CheckServeOptions(o).error().message, HasSubstr("not an IP address"));
}

TEST(ServeOptions, ATimeIsANumberWithinItsRange) {
  EXPECT_EQ(Parse({"--model-repository=/a", "--drain-secs=2.5"}).drain_secs, 2.5);
  for (const char* flag :
       {"--drain-secs", "--repository-poll-secs", "--default-slo-ms", "--header-timeout-secs", "--idle-timeout-secs"}) {
    for (const char* value : {"nan", "-nan", "inf", "-1", "1e300", "x", ""}) {
      EXPECT_THROW(Parse({"--model-repository=/a", std::string(flag) + "=" + value}), CLI::ParseError)
          << flag << "=" << value;
    }
  }
}

TEST(ServeOptions, MemoryIsBytesOrAPart) {
  EXPECT_EQ(Parse({"--model-repository=/a"}).memory, "80%");
  for (const char* const good : {"8GiB", "50%", "1.5 GB", "8000000000"}) {
    EXPECT_EQ(Parse({"--model-repository=/a", "--memory", good}).memory, good);
  }
  for (const char* const wrong : {"0%", "101%", "lots", "-8GiB", "1"}) {
    EXPECT_THROW(Parse({"--model-repository=/a", std::string("--memory=") + wrong}), CLI::ParseError) << wrong;
  }
}

}  // namespace
}  // namespace tandem
