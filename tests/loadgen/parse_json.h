#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <json/json.h>

namespace tandem::loadgen {

// What a report that must be JSON says.
inline Json::Value ParseJson(const std::string& text) {
  Json::Value value;
  std::string problem;
  const std::unique_ptr<Json::CharReader> reader(Json::CharReaderBuilder().newCharReader());
  EXPECT_TRUE(reader->parse(text.data(), text.data() + text.size(), &value, &problem)) << problem << text;
  return value;
}

}  // namespace tandem::loadgen
