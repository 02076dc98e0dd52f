// Sines, tangents and what is akin to them.

#include <ATen/ATen.h>

#include "runtimes/training/ops/elementwise.h"
#include "runtimes/training/ops/families.h"

namespace tandem::training {

void AddTrigonometryOps(OpTable& table) {
  table.Add("Sin", {1, 1}, MakeUnary<at::sin>);
  table.Add("Cos", {1, 1}, MakeUnary<at::cos>);
  table.Add("Tan", {1, 1}, MakeUnary<at::tan>);
  table.Add("Asin", {1, 1}, MakeUnary<at::asin>);
  table.Add("Acos", {1, 1}, MakeUnary<at::acos>);
  table.Add("Atan", {1, 1}, MakeUnary<at::atan>);
  table.Add("Sinh", {1, 1}, MakeUnary<at::sinh>);
  table.Add("Cosh", {1, 1}, MakeUnary<at::cosh>);
  table.Add("Asinh", {1, 1}, MakeUnary<at::asinh>);
  table.Add("Acosh", {1, 1}, MakeUnary<at::acosh>);
  table.Add("Atanh", {1, 1}, MakeUnary<at::atanh>);
}

}  // namespace tandem::training
