// Operators that look at regions of an image between its pixels: aligned regions and deformable convolutions.

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"
#include "runtimes/training/ops/window.h"

namespace tandem::training {
namespace {

// ATen's numbers for ways to sample.
constexpr std::int64_t kBilinear = 0;
constexpr std::int64_t kZeros = 0;
constexpr std::int64_t kBorder = 1;

// Places in pixels, as the sampler wants them: the image reaches from -1 to 1, at the outer edges of its pixels.
at::Tensor InSamplersUnits(const at::Tensor& places, std::int64_t size) {
  return places.mul(2).add(1).div(static_cast<double>(size)).sub(1);
}

struct RoiForm {
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t samples = 0;  // In each direction of a cell; 0: as many as it has pixels.
  double scale = 1;
  bool half_pixel = true;
};

// The places along one axis of a region that are sampled, [cells × samples].
at::Tensor PlacesAlong(const at::Tensor& begin, const at::Tensor& size, std::int64_t cells, std::int64_t samples) {
  const double count = static_cast<double>(cells * samples);
  return at::arange(cells * samples, begin.options()).add(0.5).div(count).mul(size).add(begin);
}

std::int64_t SamplesOf(const RoiForm& form, const at::Tensor& size, std::int64_t cells) {
  if (form.samples > 0) return form.samples;
  const double pixels = std::ceil(size.item<double>() / static_cast<double>(cells));
  Require(pixels <= (1 << 14), "a region is {} pixels wide", pixels);
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::max(pixels, 1.0)), 1);
}

// What one region [x1, y1, x2, y2] of an image [1, C, H, W] shows.
at::Tensor AlignedRegion(const RoiForm& form, const at::Tensor& image, const at::Tensor& region) {
  const at::Tensor corners = region.mul(form.scale).sub(form.half_pixel ? 0.5 : 0.0);
  at::Tensor width = corners.select(0, 2).sub(corners.select(0, 0));
  at::Tensor height = corners.select(0, 3).sub(corners.select(0, 1));
  if (!form.half_pixel) {
    width = width.clamp_min(1);
    height = height.clamp_min(1);
  }
  const std::int64_t down = SamplesOf(form, height.detach(), form.height);
  const std::int64_t across = SamplesOf(form, width.detach(), form.width);
  const at::Tensor y = PlacesAlong(corners.select(0, 1), height, form.height, down);
  const at::Tensor x = PlacesAlong(corners.select(0, 0), width, form.width, across);
  const at::Tensor grid = at::stack({InSamplersUnits(x, image.size(3)).unsqueeze(0).expand({y.size(0), x.size(0)}),
                                     InSamplersUnits(y, image.size(2)).unsqueeze(1).expand({y.size(0), x.size(0)})},
                                    -1);
  // A pixel's breadth beyond the edge still shows the edge; what lies further off is empty.
  const auto within = [](const at::Tensor& places, std::int64_t size) {
    return places.ge(-1).logical_and(places.le(static_cast<double>(size))).to(places.scalar_type());
  };
  const at::Tensor shown = at::grid_sampler(image, grid.unsqueeze(0), kBilinear, kBorder, /*align_corners=*/false)
                               .mul(within(y, image.size(2)).unsqueeze(1).mul(within(x, image.size(3))));
  return at::avg_pool2d(shown, {down, across});
}

at::Tensor RoiAlign(const RoiForm& form, const at::Tensor& x, const at::Tensor& regions, const at::Tensor& images) {
  Require(x.dim() == 4 && regions.dim() == 2 && regions.size(1) == 4, "regions must be four numbers each");
  const auto numbers = IntsOf(images, "batch_indices");
  Require(static_cast<std::int64_t>(numbers.size()) == regions.size(0), "each region needs an image");
  Tensors shown;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Require(numbers[i] >= 0 && numbers[i] < x.size(0), "image {} of {} is wanted", numbers[i], x.size(0));
    shown.push_back(AlignedRegion(form, x.narrow(0, numbers[i], 1), regions.select(0, static_cast<std::int64_t>(i))));
  }
  return shown.empty() ? at::empty({0, x.size(1), form.height, form.width}, x.options()) : at::cat(shown);
}

Result<Kernel> MakeRoiAlign(NodeView& node) {
  const std::string coordinates =
      node.Text("coordinate_transformation_mode", node.opset() < 16 ? "output_half_pixel" : "half_pixel");
  const RoiForm form{.height = node.Int("output_height", 1),
                     .width = node.Int("output_width", 1),
                     .samples = node.Int("sampling_ratio", 0),
                     .scale = node.Float("spatial_scale", 1.0),
                     .half_pixel = coordinates == "half_pixel"};
  if (node.Text("mode", "avg") != "avg") return Fail(ErrorCode::kUnsupported, "modes other than avg are not supported");
  if (!form.half_pixel && coordinates != "output_half_pixel") {
    return Invalid("coordinate_transformation_mode is '{}'", coordinates);
  }
  for (const std::int64_t size : {form.height, form.width, form.samples + 1}) {
    if (size < 1 || size > (1 << 14)) return Invalid("the output or sampling_ratio is {}", size);
  }
  return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {RoiAlign(form, in[0], in[1], in[2])};
  };
}

struct DeformForm {
  Window window;
  std::int64_t groups = 1;
  std::int64_t offset_groups = 1;
};

// Where each pixel of the kernel lies for each place of the output when nothing is moved, [kernel × places] along an
// axis of the kernel and of the output: [kH × kW, oH, oW].
at::Tensor RestingPlaces(const DeformForm& form, const at::Tensor& weight, const Placement& place, std::size_t axis) {
  const auto along = [&](std::size_t d) {
    return at::arange(weight.size(static_cast<std::int64_t>(d) + 2), at::kDouble)
        .mul(static_cast<double>(form.window.dilations(2)[d]));
  };
  const at::Tensor pixels = along(axis).unsqueeze(axis == 0 ? 1 : 0).expand({weight.size(2), weight.size(3)});
  const at::Tensor places = at::arange(place.count[axis], at::kDouble)
                                .mul(static_cast<double>(form.window.strides(2)[axis]))
                                .sub(static_cast<double>(place.begin[axis]))
                                .unsqueeze(axis == 0 ? 1 : 0)
                                .expand({place.count[0], place.count[1]});
  return pixels.reshape({-1, 1, 1}).add(places);
}

// Inputs: X [N, C, H, W], W [O, C / groups, kH, kW], offset, B, mask.
at::Tensor DeformConv(const DeformForm& form, std::span<const at::Tensor> in) {
  const at::Tensor& x = in[0];
  const at::Tensor& weight = in[1];
  const at::Tensor bias = Optional(in, 3);
  const at::Tensor mask = Optional(in, 4);
  if (form.window.SpaceOf(x) != 2) throw UnsupportedError("only images of two dimensions are supported");
  Require(weight.dim() == 4 && x.numel() > 0 && weight.numel() > 0, "the weight must be one of images");
  form.window.CheckKernel(weight.sizes().slice(2));
  const Placement place = form.window.Place(x.sizes().slice(2), weight.sizes().slice(2));
  const std::int64_t n = x.size(0), c = x.size(1), h = place.count[0], w = place.count[1], og = form.offset_groups;
  const std::int64_t kernel = weight.size(2) * weight.size(3);
  Require(c % og == 0 && c == weight.size(1) * form.groups && weight.size(0) % form.groups == 0,
          "channels, weight and groups do not fit");
  const at::Tensor offset = in[2].reshape({n, og, kernel, 2, h, w});
  const auto moved = [&](std::int64_t axis) {
    const auto rest = RestingPlaces(form, weight, place, static_cast<std::size_t>(axis)).to(x.scalar_type());
    return InSamplersUnits(offset.select(3, axis).add(rest), x.size(axis + 2)).reshape({n * og, kernel * h, w});
  };
  at::Tensor columns = at::grid_sampler(x.reshape({n * og, c / og, x.size(2), x.size(3)}),
                                        at::stack({moved(1), moved(0)}, -1), kBilinear, kZeros, /*align_corners=*/false)
                           .reshape({n, og, c / og, kernel, h, w});
  if (mask.defined()) columns = columns.mul(mask.reshape({n, og, 1, kernel, h, w}));
  columns = columns.reshape({n, form.groups, c / form.groups * kernel, h * w});
  const at::Tensor filters = weight.reshape({form.groups, weight.size(0) / form.groups, -1});
  const at::Tensor y = at::matmul(filters, columns).reshape({n, weight.size(0), h, w});
  return bias.defined() ? y.add(bias.reshape({1, weight.size(0), 1, 1})) : y;
}

Result<Kernel> MakeDeformConv(NodeView& node) {
  DeformForm form;
  TANDEM_ASSIGN(form.window, Window::Read(node));
  form.groups = node.Int("group", 1);
  form.offset_groups = node.Int("offset_group", 1);
  if (form.groups < 1 || form.offset_groups < 1)
    return Invalid("groups are {} and {}", form.groups, form.offset_groups);
  return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {DeformConv(form, in)}; };
}

}  // namespace

void AddRegionOps(OpTable& table) {
  table.Add("RoiAlign", {3, 3}, MakeRoiAlign);
  table.Add("DeformConv", {3, 5}, MakeDeformConv);
}

}  // namespace tandem::training
