// Operators that take or put elements at places which another tensor tells.

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t Product(at::IntArrayRef sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

Sizes Joined(at::IntArrayRef a, at::IntArrayRef b, at::IntArrayRef c = {}) {
  Sizes all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

at::Tensor Gather(const at::Tensor& x, const at::Tensor& given, std::int64_t axis) {
  const at::Tensor indices = CountedFromFront(given, x.size(axis));
  if (indices.dim() == 0) return x.select(axis, indices.item<std::int64_t>());
  // ATen has a short way back for tables of embeddings.
  if (axis == 0 && x.dim() == 2) return at::embedding(x, indices);
  const auto d = static_cast<std::size_t>(axis);
  return x.index_select(axis, indices.flatten())
      .reshape(Joined(x.sizes().slice(0, d), indices.sizes(), x.sizes().slice(d + 1)));
}

Result<Kernel> MakeGather(NodeView& node) {
  const std::int64_t axis = node.Int("axis", 0);
  return [axis](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {Gather(in[0], in[1], AxisOf(axis, in[0].dim()))};
  };
}

Result<Kernel> MakeGatherElements(NodeView& node) {
  const std::int64_t axis = node.Int("axis", 0);
  return [axis](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const std::int64_t d = AxisOf(axis, in[0].dim());
    return {in[0].gather(d, CountedFromFront(in[1], in[0].size(d)))};
  };
}

// Rows of indices [..., k] into the dimensions `sizes`, as places in these dimensions taken as one.
at::Tensor PlacesOf(const at::Tensor& indices, at::IntArrayRef sizes) {
  at::Tensor places = at::zeros(indices.sizes().slice(0, indices.sizes().size() - 1), at::kLong);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const at::Tensor each = CountedFromFront(indices.select(-1, static_cast<std::int64_t>(d)), sizes[d]);
    // A wrong index may still be a place in all dimensions taken as one.
    Require(!each.lt(0).logical_or(each.ge(sizes[d])).any().item<bool>(), "an index is not below {}", sizes[d]);
    places = places.mul(sizes[d]).add(each);
  }
  return places;
}

at::Tensor GatherNd(const at::Tensor& x, const at::Tensor& indices, std::size_t batch) {
  Require(indices.dim() > 0 && batch < indices.sizes().size() && batch < x.sizes().size(),
          "batch_dims is {} for {} and {} dimensions", batch, x.dim(), indices.dim());
  Require(x.sizes().slice(0, batch) == indices.sizes().slice(0, batch), "batches are not alike");
  const std::int64_t depth = indices.size(-1);
  Require(depth >= 1 && depth <= x.dim() - static_cast<std::int64_t>(batch), "indices name {} dimensions", depth);
  const auto inner = x.sizes().slice(batch, static_cast<std::size_t>(depth));
  const auto rest = x.sizes().slice(batch + static_cast<std::size_t>(depth));
  const std::int64_t batches = Product(x.sizes().slice(0, batch));
  const std::int64_t plane = Product(inner);
  at::Tensor places = PlacesOf(indices, inner);
  const Sizes shape = Joined(places.sizes(), rest);
  if (batches > 0 && places.numel() > 0) {
    places = places.reshape({batches, -1}).add(at::arange(batches, at::kLong).mul(plane).unsqueeze(1));
  }
  return x.reshape(Joined({batches * plane}, rest)).index_select(0, places.flatten()).reshape(shape);
}

Result<Kernel> MakeGatherNd(NodeView& node) {
  const std::int64_t batch = node.Int("batch_dims", 0);
  if (batch < 0) return Invalid("batch_dims is {}", batch);
  return [batch](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {GatherNd(in[0], in[1], static_cast<std::size_t>(batch))};
  };
}

// What becomes of a value that is there already, in ATen's words; empty: it is replaced.
Result<std::string> ReadReduction(NodeView& node) {
  const std::string reduction = node.Text("reduction", "none");
  if (reduction == "none") return "";
  if (reduction == "add") return "sum";
  if (reduction == "mul") return "prod";
  if (reduction == "max") return "amax";
  if (reduction == "min") return "amin";
  return Invalid("reduction is '{}'", reduction);
}

Result<Kernel> MakeScatterElements(NodeView& node) {
  const std::int64_t axis = node.Int("axis", 0);
  TANDEM_ASSIGN(const std::string reduction, ReadReduction(node));
  return [axis, reduction](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const std::int64_t d = AxisOf(axis, in[0].dim());
    const at::Tensor indices = CountedFromFront(in[1], in[0].size(d));
    Require(indices.sizes() == in[2].sizes(), "indices and updates are not alike");
    if (reduction.empty()) return {in[0].scatter(d, indices, in[2])};
    if (reduction == "sum") return {in[0].scatter_add(d, indices, in[2])};
    return {in[0].scatter_reduce(d, indices, in[2], reduction)};
  };
}

at::Tensor ScatterNd(const at::Tensor& x, const at::Tensor& indices, const at::Tensor& updates,
                     const std::string& reduction) {
  Require(indices.dim() > 0, "indices must have a dimension");
  const std::int64_t depth = indices.size(-1);
  Require(depth >= 1 && depth <= x.dim(), "indices name {} dimensions", depth);
  const auto inner = x.sizes().slice(0, static_cast<std::size_t>(depth));
  const auto rest = x.sizes().slice(static_cast<std::size_t>(depth));
  const at::Tensor places = PlacesOf(indices, inner);
  Require(updates.sizes() == at::IntArrayRef(Joined(places.sizes(), rest)), "updates do not fit the indices");
  if (updates.numel() == 0) return x;
  const at::Tensor flat = x.reshape({Product(inner), Product(rest)});
  const at::Tensor to = places.flatten();
  const at::Tensor source = updates.reshape({places.numel(), Product(rest)});
  const at::Tensor y = reduction.empty() ? flat.index_copy(0, to, source)
                       : reduction == "sum"
                           ? flat.index_add(0, to, source)
                           : flat.scatter_reduce(0, to.unsqueeze(1).expand_as(source), source, reduction);
  return y.reshape(x.sizes());
}

Result<Kernel> MakeScatterNd(NodeView& node) {
  TANDEM_ASSIGN(const std::string reduction, ReadReduction(node));
  return [reduction](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {ScatterNd(in[0], in[1], in[2], reduction)};
  };
}

Result<Kernel> MakeCompress(NodeView& node) {
  const bool flattens = !node.Has("axis");
  const std::int64_t axis = node.Int("axis", 0);
  return [flattens, axis](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor x = flattens ? in[0].flatten() : in[0];
    Require(in[1].dim() == 1 && in[1].scalar_type() == at::kBool,
            "the condition must be truth values in one dimension");
    return {x.index_select(AxisOf(axis, x.dim()), at::nonzero(in[1]).flatten())};
  };
}

Result<Kernel> MakeNonZero(NodeView&) {
  return
      [](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {at::nonzero(in[0]).t().contiguous()}; };
}

// Places outside the depth are off everywhere.
Result<Kernel> MakeOneHot(NodeView& node) {
  const std::int64_t axis = node.Int("axis", -1);
  return [axis](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const double number = NumberOf(in[1], "depth");
    Require(number >= 0 && number <= (1 << 24), "depth is {}", number);
    Require(in[2].dim() == 1 && in[2].size(0) == 2, "values must be two");
    const auto depth = static_cast<std::int64_t>(number);
    const std::int64_t d = AxisOf(axis, in[0].dim() + 1);
    Sizes shape(static_cast<std::size_t>(in[0].dim()) + 1, 1);
    shape[static_cast<std::size_t>(d)] = depth;
    const at::Tensor hot =
        CountedFromFront(in[0].to(at::kLong), depth).unsqueeze(d).eq(at::arange(depth, at::kLong).reshape(shape));
    return {at::where(hot, in[2].select(0, 1), in[2].select(0, 0))};
  };
}

// Each sequence is turned round as far as it goes.
Result<Kernel> MakeReverseSequence(NodeView& node) {
  const std::int64_t batch_axis = node.Int("batch_axis", 1);
  const std::int64_t time_axis = node.Int("time_axis", 0);
  if (batch_axis + time_axis != 1 || batch_axis * time_axis != 0) return Invalid("axes must be 0 and 1");
  return [batch_axis, time_axis](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    Require(x.dim() >= 2 && in[1].dim() == 1 && in[1].size(0) == x.size(batch_axis),
            "one length for each sequence is needed");
    const at::Tensor lengths = in[1].to(at::kLong).unsqueeze(time_axis);
    const at::Tensor times = at::arange(x.size(time_axis), at::kLong).unsqueeze(batch_axis);
    const at::Tensor from = at::where(times.lt(lengths), lengths.sub(1).sub(times), times);
    Sizes shape(static_cast<std::size_t>(x.dim()), 1);
    shape[0] = x.size(0);
    shape[1] = x.size(1);
    return {x.gather(time_axis, from.reshape(shape).expand(x.sizes()))};
  };
}

}  // namespace

void AddGatheringOps(OpTable& table) {
  table.Add("Gather", {2, 2}, MakeGather);
  table.Add("GatherElements", {2, 2}, MakeGatherElements);
  table.Add("GatherND", {2, 2}, MakeGatherNd);
  table.Add("Scatter", {3, 3}, MakeScatterElements);
  table.Add("ScatterElements", {3, 3}, MakeScatterElements);
  table.Add("ScatterND", {3, 3}, MakeScatterNd);
  table.Add("Compress", {2, 2}, MakeCompress);
  table.Add("NonZero", {1, 1}, MakeNonZero);
  table.Add("OneHot", {3, 3}, MakeOneHot);
  table.Add("ReverseSequence", {2, 2}, MakeReverseSequence);
}

}  // namespace tandem::training
