#include "bench/side_by_side.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "bench/stage.h"

namespace tandem::bench {
namespace {

constexpr int kMostUsers = 1000;

class SideBySide final : public Measurement {
 public:
  SideBySide(std::string model, int users, std::vector<SideSpec> sides)
      : model_(std::move(model)), users_(users), sides_(std::move(sides)) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    std::vector<std::string> names;
    for (const SideSpec& side : sides_) std::ranges::move(side.series(), std::back_inserter(names));
    return names;
  }

  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  // Constant after construction.
  const std::string model_;
  const int users_;
  const std::vector<SideSpec> sides_;
};

Result<SeriesMap> SideBySide::Run(BenchContext& context, const std::set<std::string>& wanted) const {
  const std::string what = Format("{}, {} at once", ModelName(model_), users_);
  context.say(what);
  TANDEM_ASSIGN(const auto stage, Stage::Set(context, model_, users_));
  std::vector<Side> sides;
  SeriesMap given_up;
  for (const SideSpec& spec : sides_) {
    if (std::ranges::none_of(spec.series(), [&](const auto& name) { return wanted.contains(name); })) continue;
    auto side = stage->Add(spec);
    if (side) {
      sides.push_back(*std::move(side));
    } else if (spec.source == SideSource::kPeer && side.error().code != ErrorCode::kCancelled) {
      given_up[spec.name].not_run = side.error().message;
    } else {
      return std::unexpected(std::move(side).error());
    }
  }
  TANDEM_ASSIGN(SeriesMap series, Interleave(context, what, sides));
  given_up.merge(series);
  // What is said of a side holds for all its series, those of rounds that went well included.
  for (const SideSpec& spec : sides_) {
    const auto reason = given_up.find(spec.name);
    if (reason == given_up.end()) continue;
    for (const std::string& name : spec.series()) given_up[name] = reason->second;
  }
  return given_up;
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseSideBySide(JsonFields& fields, const std::vector<PeerSpec>& peers) {
  TANDEM_ASSIGN(std::string model, fields.Text("model"));
  TANDEM_ASSIGN(const int users, fields.Whole("users", 1, kMostUsers));
  TANDEM_ASSIGN(const std::vector<JsonFields> objects, fields.Objects("sides"));
  if (objects.empty()) return Invalid("{}: must list at least one side", fields.At("sides"));
  std::vector<SideSpec> sides;
  for (const JsonFields& object : objects) {
    TANDEM_ASSIGN(SideSpec side, ParseSide(object, peers));
    if (std::ranges::contains(sides, side.name, &SideSpec::name)) {
      return Invalid("{}: there are two sides '{}'", object.At("name"), Excerpt(side.name));
    }
    sides.push_back(std::move(side));
  }
  return std::make_unique<SideBySide>(std::move(model), users, std::move(sides));
}

}  // namespace tandem::bench
