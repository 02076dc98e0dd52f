#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "api/wire/proto/inference.pb.h"
#include "colocation/servable.h"
#include "memory/shared_regions.h"
#include "server/core/server_core.h"
#include "server/core/settings.h"
#include "server/repository/model_repository.h"

// The control calls' messages from and to our own structs. Pure: no gRPC, no server.
namespace tandem::grpc_front {

void Fill(const ServerInfo& info, inference::ServerMetadataResponse& message);

// `versions` are all that are served, or the one that was asked for.
void Fill(const Servable& servable, const std::string& platform, std::span<const std::string> versions,
          inference::ModelMetadataResponse& message);

// Every duration is present, also when zero: perf_analyzer reads them all.
void Fill(const std::string& name, const std::string& version, const ModelTotals& totals,
          inference::ModelStatistics& message);

void Fill(std::span<const repository::IndexEntry> entries, inference::RepositoryIndexResponse& message);

// Takes the files' contents out of the message.
[[nodiscard]] Result<repository::LoadOptions> TakeLoadOptions(inference::RepositoryModelLoadRequest& message);
[[nodiscard]] Status CheckUnload(const inference::RepositoryModelUnloadRequest& message);
// There is one repository and it has no name.
[[nodiscard]] Status CheckRepositoryName(const std::string& name);

void Fill(std::span<const std::shared_ptr<const SharedRegion>> regions,
          inference::SystemSharedMemoryStatusResponse& message);

[[nodiscard]] Result<LogSettings::Values> ReadLogChanges(const inference::LogSettingsRequest& message);
void Fill(const LogSettings::Values& values, inference::LogSettingsResponse& message);

// A setting without a value is reset.
[[nodiscard]] TraceSettings::Changes ReadTraceChanges(const inference::TraceSettingRequest& message);
void Fill(const TraceSettings::Values& values, inference::TraceSettingResponse& message);

}  // namespace tandem::grpc_front
