// Windows and spectra of signals.

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"
#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {
namespace {

using WindowFunction = at::Tensor (*)(std::int64_t size, bool periodic);

at::Tensor Hann(std::int64_t size, bool periodic) {
  return at::hann_window(size, periodic, at::kDouble);
}

at::Tensor Hamming(std::int64_t size, bool periodic) {
  return at::hamming_window(size, periodic, 25.0 / 46.0, 21.0 / 46.0, at::kDouble);
}

at::Tensor Blackman(std::int64_t size, bool periodic) {
  return at::blackman_window(size, periodic, at::kDouble);
}

template <WindowFunction kFunction>
Result<Kernel> MakeWindow(NodeView& node) {
  TANDEM_ASSIGN(const at::ScalarType type,
                ScalarTypeOf(static_cast<int>(node.Int("output_datatype", onnx::TensorProto::FLOAT))));
  const bool periodic = node.Int("periodic", 1) != 0;
  return [type, periodic](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const std::int64_t size = IntOf(in[0], "size");
    Require(size >= 0 && size <= (1 << 24), "size is {}", size);
    return {kFunction(size, periodic).to(type)};
  };
}

struct DftForm {
  bool onesided = false;
  bool inverse = false;
};

// The last dimension holds real and imaginary parts; a real signal has the first only.
at::Tensor Dft(const DftForm& form, const at::Tensor& x, std::int64_t axis, std::optional<std::int64_t> length) {
  Require(x.dim() >= 2 && (x.size(-1) == 1 || x.size(-1) == 2), "the last dimension must hold one or two parts");
  Require(!length || (*length >= 1 && *length < (1 << 30)), "dft_length is {}", length.value_or(0));
  const std::int64_t d = AxisOf(axis, x.dim());
  Require(d < x.dim() - 1, "the axis of the parts is not one of the signal");
  const bool real = x.size(-1) == 1;
  const at::Tensor signal = real ? x.squeeze(-1) : at::view_as_complex(x.contiguous());
  if (form.onesided && form.inverse) return at::fft_irfft(signal, length, d).unsqueeze(-1);
  if (form.onesided) {
    Require(real, "a one-sided spectrum is of a real signal");
    return at::view_as_real(at::fft_rfft(signal, length, d));
  }
  return at::view_as_real(form.inverse ? at::fft_ifft(signal, length, d) : at::fft_fft(signal, length, d));
}

// The axis is an attribute before opset 20, and an input from then on.
Result<Kernel> MakeDft(NodeView& node) {
  const DftForm form{.onesided = node.Int("onesided", 0) != 0, .inverse = node.Int("inverse", 0) != 0};
  const std::int64_t attribute = node.opset() < 20 ? node.Int("axis", 1) : -2;
  return [form, attribute](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor length = Optional(in, 1);
    const at::Tensor axis = Optional(in, 2);
    return {Dft(form, in[0], axis.defined() ? IntOf(axis, "axis") : attribute,
                length.defined() ? std::optional(IntOf(length, "dft_length")) : std::nullopt)};
  };
}

// Frames of the signal [batch, length, 1], each times the window, and their spectra [batch, frames, bins, 2].
Result<Kernel> MakeStft(NodeView& node) {
  const bool onesided = node.Int("onesided", 1) != 0;
  if (!node.HasInput(2) && !node.HasInput(3)) return Invalid("neither window nor frame_length is given");
  return [onesided](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    const std::int64_t step = IntOf(in[1], "frame_step");
    const at::Tensor window = Optional(in, 2);
    const at::Tensor given = Optional(in, 3);
    const std::int64_t length = given.defined() ? IntOf(given, "frame_length") : window.numel();
    if (x.dim() == 3 && x.size(2) == 2) throw UnsupportedError("complex signals are not supported");
    Require(x.dim() == 2 || (x.dim() == 3 && x.size(2) == 1), "the signal must be [batch, length, 1]");
    Require(step >= 1 && length >= 1 && length <= x.size(1), "frames of {} in steps of {}", length, step);
    at::Tensor frames = (x.dim() == 3 ? x.squeeze(2) : x).unfold(1, length, step);
    if (window.defined()) {
      Require(window.dim() == 1 && window.size(0) == length, "the window is {} long, a frame {}", window.numel(),
              length);
      frames = frames.mul(window);
    }
    return {at::view_as_real(onesided ? at::fft_rfft(frames) : at::fft_fft(frames))};
  };
}

// Triangles over the bins of a spectrum, each from the one mel frequency before its own to the one behind it.
at::Tensor MelWeights(std::int64_t mels, std::int64_t length, double rate, double low, double high) {
  Require(mels >= 1 && mels < (1 << 16) && length >= 1 && length < (1 << 24), "{} mel bins of {}", mels, length);
  Require(rate > 0 && low >= 0 && high >= low && high <= rate, "from {} to {} at a rate of {}", low, high, rate);
  const auto mel_of = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel_of(high) - mel_of(low)) / static_cast<double>(mels + 2);
  const auto bin_of = [&](std::int64_t i) {
    const double hertz = 700 * (std::pow(10, (mel_of(low) + static_cast<double>(i) * step) / 2595) - 1);
    return static_cast<std::int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate));
  };
  const std::int64_t bins = length / 2 + 1;
  const at::Tensor weights = at::zeros({bins, mels}, at::kDouble);
  auto rows = weights.accessor<double, 2>();
  for (std::int64_t i = 0; i < mels; ++i) {
    const std::int64_t before = bin_of(i), middle = bin_of(i + 1), behind = bin_of(i + 2);
    for (std::int64_t bin = before; bin < std::min(behind, bins); ++bin) {
      rows[bin][i] = bin < middle ? static_cast<double>(bin - before) / static_cast<double>(middle - before)
                                  : static_cast<double>(behind - bin) / static_cast<double>(behind - middle);
    }
    if (middle < bins) rows[middle][i] = 1;
  }
  return weights;
}

Result<Kernel> MakeMelWeightMatrix(NodeView& node) {
  TANDEM_ASSIGN(const at::ScalarType type,
                ScalarTypeOf(static_cast<int>(node.Int("output_datatype", onnx::TensorProto::FLOAT))));
  return [type](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {MelWeights(IntOf(in[0], "num_mel_bins"), IntOf(in[1], "dft_length"), NumberOf(in[2], "sample_rate"),
                       NumberOf(in[3], "lower_edge_hertz"), NumberOf(in[4], "upper_edge_hertz"))
                .to(type)};
  };
}

}  // namespace

void AddSignalOps(OpTable& table) {
  table.Add("HannWindow", {1, 1}, MakeWindow<Hann>);
  table.Add("HammingWindow", {1, 1}, MakeWindow<Hamming>);
  table.Add("BlackmanWindow", {1, 1}, MakeWindow<Blackman>);
  table.Add("DFT", {1, 3}, MakeDft);
  table.Add("STFT", {2, 4}, MakeStft);
  table.Add("MelWeightMatrix", {5, 5}, MakeMelWeightMatrix);
}

}  // namespace tandem::training
