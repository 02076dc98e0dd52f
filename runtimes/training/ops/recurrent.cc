// RNN, GRU and LSTM. The common forms are ATen's own; the others are unrolled here.

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/recurrent_form.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

using Kind = RecurrentForm::Kind;

// The inputs with time first; what a node leaves out is undefined.
struct Sequence {
  at::Tensor x;       // [time, batch, features]
  at::Tensor weight;  // [directions, gates × hidden, features]
  at::Tensor recurrence;
  at::Tensor bias;     // [directions, 2 × gates × hidden]
  at::Tensor lengths;  // [batch]
  at::Tensor hidden;   // [directions, batch, hidden]; zeros when left out.
  at::Tensor cell;     // The same.
  at::Tensor peephole;
};

// After each time of one direction: y [time, batch, hidden], and the last hidden and cell states.
struct Outcome {
  at::Tensor y;
  at::Tensor hidden;
  at::Tensor cell;
};

struct State {
  at::Tensor hidden;
  at::Tensor cell;
};

Sequence ReadSequence(const RecurrentForm& form, std::span<const at::Tensor> in) {
  Sequence s{.x = in[0],
             .weight = in[1],
             .recurrence = in[2],
             .bias = Optional(in, 3),
             .lengths = Optional(in, 4),
             .hidden = Optional(in, 5),
             .cell = Optional(in, 6),
             .peephole = Optional(in, 7)};
  const auto directions = static_cast<std::int64_t>(form.directions);
  const std::int64_t rows = form.gates * form.hidden;
  const auto check = [](const at::Tensor& tensor, const std::vector<std::int64_t>& shape, std::string_view name) {
    Require(!tensor.defined() || tensor.sizes() == at::IntArrayRef(shape),
            "{} does not have the shape that the others ask for", name);
  };
  Require(s.x.dim() == 3, "X has {} dimensions", s.x.dim());
  if (form.batch_first) {
    s.x = s.x.transpose(0, 1);
    for (at::Tensor* state : {&s.hidden, &s.cell}) {
      Require(!state->defined() || state->dim() == 3, "a state has {} dimensions", state->defined() ? state->dim() : 0);
      if (state->defined()) *state = state->transpose(0, 1);
    }
  }
  const std::int64_t batch = s.x.size(1);
  Require(s.x.size(0) > 0 && batch > 0, "X is empty");
  check(s.weight, {directions, rows, s.x.size(2)}, "W");
  check(s.recurrence, {directions, rows, form.hidden}, "R");
  check(s.bias, {directions, 2 * rows}, "B");
  check(s.lengths, {batch}, "sequence_lens");
  check(s.hidden, {directions, batch, form.hidden}, "initial_h");
  check(s.cell, {directions, batch, form.hidden}, "initial_c");
  check(s.peephole, {directions, 3 * form.hidden}, "P");
  if (!s.hidden.defined()) s.hidden = at::zeros({directions, batch, form.hidden}, s.x.options());
  if (!s.cell.defined() && form.kind == Kind::kLstm) s.cell = at::zeros_like(s.hidden);
  return s;
}

// Against time, each sequence as far as it goes.
at::Tensor TurnedRound(const at::Tensor& x, const at::Tensor& lengths) {
  if (!lengths.defined()) return x.flip({0});
  const at::Tensor times = at::arange(x.size(0), at::kLong).unsqueeze(1);
  const at::Tensor each = lengths.to(at::kLong).unsqueeze(0);
  const at::Tensor from = at::where(times.lt(each), each.sub(1).sub(times), times);
  return x.gather(0, from.unsqueeze(2).expand(x.sizes()));
}

// One direction, with the weights that it has.
class Unrolled {
 public:
  Unrolled(const RecurrentForm& form, const Sequence& sequence, std::size_t direction)
      : form_(form), direction_(direction), lengths_(sequence.lengths) {
    const auto d = static_cast<std::int64_t>(direction);
    weight_ = sequence.weight.select(0, d);
    recurrence_ = sequence.recurrence.select(0, d);
    const std::int64_t rows = form.gates * form.hidden;
    const at::Tensor both =
        sequence.bias.defined() ? sequence.bias.select(0, d) : at::zeros({2 * rows}, sequence.x.options());
    bias_ = both.narrow(0, 0, rows);
    recurrent_bias_ = both.narrow(0, rows, rows);
    if (sequence.peephole.defined()) peepholes_ = sequence.peephole.select(0, d).split(form.hidden);
  }

  Outcome Run(const Sequence& sequence) const {
    const auto d = static_cast<std::int64_t>(direction_);
    const bool backwards = form_.backwards || direction_ == 1;
    const at::Tensor x = backwards ? TurnedRound(sequence.x, lengths_) : sequence.x;
    const Tensors steps = at::linear(x, weight_, bias_).unbind(0);
    State state{.hidden = sequence.hidden.select(0, d),
                .cell = sequence.cell.defined() ? sequence.cell.select(0, d) : at::Tensor()};
    const at::Tensor lengths = lengths_.defined() ? lengths_.to(at::kLong).unsqueeze(1) : at::Tensor();
    Tensors hidden;
    for (std::size_t t = 0; t < steps.size(); ++t) {
      State next = Step(steps[t], state);
      at::Tensor y = next.hidden;
      if (lengths.defined()) {
        // A sequence that is over keeps its state, and its output is zero.
        const at::Tensor runs = lengths.gt(static_cast<std::int64_t>(t));
        y = at::where(runs, y, at::zeros_like(y));
        next.hidden = at::where(runs, next.hidden, state.hidden);
        if (next.cell.defined()) next.cell = at::where(runs, next.cell, state.cell);
      }
      hidden.push_back(y);
      state = next;
    }
    const at::Tensor y = at::stack(hidden);
    return {.y = backwards ? TurnedRound(y, lengths_) : y, .hidden = state.hidden, .cell = state.cell};
  }

 private:
  // `x` is the input times its weights, with its bias.
  State Step(const at::Tensor& x, const State& state) const {
    switch (form_.kind) {
      case Kind::kLstm: return LstmStep(x, state);
      case Kind::kGru: return GruStep(x, state);
      case Kind::kRnn:
        return {.hidden = Activate(0, x + at::linear(state.hidden, recurrence_, recurrent_bias_)), .cell = {}};
    }
    return state;
  }

  State LstmStep(const at::Tensor& x, const State& state) const {
    const Tensors gates = (x + at::linear(state.hidden, recurrence_, recurrent_bias_)).chunk(4, 1);
    const auto peek = [&](std::size_t gate, const at::Tensor& cell) {
      return peepholes_.empty() ? gates[gate] : gates[gate] + peepholes_[gate] * cell;
    };
    const at::Tensor input = Activate(0, peek(0, state.cell));
    const at::Tensor forget = form_.input_forget ? 1 - input : Activate(0, peek(2, state.cell));
    const at::Tensor cell = forget * state.cell + input * Activate(1, gates[3]);
    const at::Tensor output = Activate(0, peek(1, cell));
    return {.hidden = output * form_.At(direction_, 2)(cell), .cell = cell};
  }

  State GruStep(const at::Tensor& x, const State& state) const {
    const Tensors own = x.chunk(3, 1);
    const std::int64_t two = 2 * form_.hidden;
    at::Tensor candidate;
    at::Tensor update;
    if (form_.linear_before_reset) {
      const Tensors past = at::linear(state.hidden, recurrence_, recurrent_bias_).chunk(3, 1);
      update = Activate(0, own[0] + past[0]);
      candidate = Activate(1, own[2] + Activate(0, own[1] + past[1]) * past[2]);
    } else {
      const Tensors past =
          at::linear(state.hidden, recurrence_.narrow(0, 0, two), recurrent_bias_.narrow(0, 0, two)).chunk(2, 1);
      update = Activate(0, own[0] + past[0]);
      const at::Tensor kept = Activate(0, own[1] + past[1]) * state.hidden;
      candidate = Activate(1, own[2] + at::linear(kept, recurrence_.narrow(0, two, form_.hidden),
                                                  recurrent_bias_.narrow(0, two, form_.hidden)));
    }
    return {.hidden = (1 - update) * candidate + update * state.hidden, .cell = {}};
  }

  at::Tensor Activate(std::size_t index, const at::Tensor& x) const {
    return form_.At(direction_, index)(form_.Clipped(x));
  }

  const RecurrentForm& form_;
  const std::size_t direction_;
  const at::Tensor lengths_;
  at::Tensor weight_;
  at::Tensor recurrence_;
  at::Tensor bias_;
  at::Tensor recurrent_bias_;
  Tensors peepholes_;  // Of the input, output and forget gates, as the gates stand.
};

// Whether ATen's own does what the node asks for.
bool IsCommon(const RecurrentForm& form, const Sequence& s) {
  if (form.clip || form.input_forget || s.lengths.defined() || s.peephole.defined()) return false;
  const auto all_are = [&form](std::initializer_list<std::string_view> cell) {
    for (std::size_t i = 0; i < form.names.size(); ++i) {
      if (form.names[i] != cell.begin()[i % cell.size()]) return false;
    }
    return true;
  };
  switch (form.kind) {
    case Kind::kLstm: return all_are({"Sigmoid", "Tanh", "Tanh"});
    case Kind::kGru: return form.linear_before_reset && all_are({"Sigmoid", "Tanh"});
    case Kind::kRnn: return all_are({"Tanh"}) || all_are({"Relu"});
  }
  return false;
}

// ONNX's gates in ATen's order: input, forget, cell, output; or reset, update, new.
at::Tensor Reordered(const RecurrentForm& form, const at::Tensor& rows) {
  if (form.kind == Kind::kRnn) return rows;
  const Tensors gates = rows.split(form.hidden);
  if (form.kind == Kind::kGru) return at::cat({gates[1], gates[0], gates[2]});
  return at::cat({gates[0], gates[2], gates[3], gates[1]});
}

// The outcome of all directions: y [time, directions, batch, hidden], states [directions, batch, hidden].
Outcome RunCommon(const RecurrentForm& form, const Sequence& s) {
  Tensors parameters;
  for (std::int64_t d = 0; d < s.weight.size(0); ++d) {
    parameters.push_back(Reordered(form, s.weight.select(0, d)));
    parameters.push_back(Reordered(form, s.recurrence.select(0, d)));
    if (!s.bias.defined()) continue;
    for (const at::Tensor& bias : s.bias.select(0, d).chunk(2)) parameters.push_back(Reordered(form, bias));
  }
  const at::Tensor x = form.backwards ? s.x.flip({0}) : s.x;
  const bool biased = s.bias.defined();
  const bool both = form.directions == 2;
  const bool train = at::GradMode::is_enabled();
  Outcome all;
  if (form.kind == Kind::kLstm) {
    std::tie(all.y, all.hidden, all.cell) =
        at::lstm(x, {s.hidden, s.cell}, parameters, biased, 1, 0.0, train, both, false);
  } else {
    using Run = std::tuple<at::Tensor, at::Tensor> (*)(const at::Tensor&, const at::Tensor&, at::TensorList, bool,
                                                       std::int64_t, double, bool, bool, bool);
    const Run run = form.kind == Kind::kGru   ? Run(at::gru)
                    : form.names[0] == "Relu" ? Run(at::rnn_relu)
                                              : Run(at::rnn_tanh);
    std::tie(all.y, all.hidden) = run(x, s.hidden, parameters, biased, 1, 0.0, train, both, false);
  }
  if (form.backwards) all.y = all.y.flip({0});
  all.y = all.y.reshape({s.x.size(0), s.x.size(1), static_cast<std::int64_t>(form.directions), form.hidden})
              .transpose(1, 2);
  return all;
}

Outcome RunUnrolled(const RecurrentForm& form, const Sequence& s) {
  Tensors y;
  Tensors hidden;
  Tensors cell;
  for (std::size_t d = 0; d < form.directions; ++d) {
    const Outcome one = Unrolled(form, s, d).Run(s);
    y.push_back(one.y);
    hidden.push_back(one.hidden);
    if (one.cell.defined()) cell.push_back(one.cell);
  }
  return {.y = at::stack(y, 1), .hidden = at::stack(hidden), .cell = cell.empty() ? at::Tensor() : at::stack(cell)};
}

template <Kind kKind>
Result<Kernel> MakeRecurrent(NodeView& node) {
  TANDEM_ASSIGN(const RecurrentForm form, RecurrentForm::Read(node, kKind));
  return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const Sequence sequence = ReadSequence(form, in);
    Outcome all = IsCommon(form, sequence) ? RunCommon(form, sequence) : RunUnrolled(form, sequence);
    if (form.batch_first) {
      all.y = all.y.permute({2, 0, 1, 3});
      all.hidden = all.hidden.transpose(0, 1);
      if (all.cell.defined()) all.cell = all.cell.transpose(0, 1);
    }
    Tensors outputs{all.y, all.hidden};
    if (all.cell.defined()) outputs.push_back(all.cell);
    return outputs;
  };
}

}  // namespace

void AddRecurrentOps(OpTable& table) {
  table.Add("RNN", {3, 6, 2}, MakeRecurrent<Kind::kRnn>);
  table.Add("GRU", {3, 6, 2}, MakeRecurrent<Kind::kGru>);
  table.Add("LSTM", {3, 8, 3}, MakeRecurrent<Kind::kLstm>);
}

}  // namespace tandem::training
