#pragma once

#include "runtimes/training/ops/op_table.h"

// One function a family, each in the file of its name (arithmetic.cc, …).

namespace tandem::training {

void AddActivationOps(OpTable& table);
void AddArithmeticOps(OpTable& table);
void AddBatchNormalizationOps(OpTable& table);
void AddConstantOps(OpTable& table);
void AddConvolutionOps(OpTable& table);
void AddGatheringOps(OpTable& table);
void AddJoiningOps(OpTable& table);
void AddLogicOps(OpTable& table);
void AddLossOps(OpTable& table);
void AddMatrixOps(OpTable& table);
void AddNormalizationOps(OpTable& table);
void AddPoolingOps(OpTable& table);
void AddRandomOps(OpTable& table);
void AddRankingOps(OpTable& table);
void AddRecurrentOps(OpTable& table);
void AddReductionOps(OpTable& table);
void AddRegionOps(OpTable& table);
void AddResizeOps(OpTable& table);
void AddSamplingOps(OpTable& table);
void AddShapeOps(OpTable& table);
void AddSignalOps(OpTable& table);
void AddSoftmaxOps(OpTable& table);
void AddTrigonometryOps(OpTable& table);

}  // namespace tandem::training
