#pragma once

#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "server/repository/session_factory.h"

namespace inference {
class ModelConfig;
}

namespace tandem::repository {

// What can be said of a configuration before its graph is known: the name fits the folder, numbers are in range, the
// platform is one we run (else kUnsupported), and nothing is asked for that we would have to ignore at the cost of a
// wrong answer (kUnsupported). The error names the field and the value.
[[nodiscard]] Status CheckConfig(std::string_view model_name, const inference::ModelConfig& config);

// What else holds for a configuration that came with a load call: whoever may make such calls does not thereby get at
// the machine's files. Options of providers that name files, libraries or addresses need a file in the repository.
[[nodiscard]] Status CheckSentConfig(const inference::ModelConfig& config);

// Device and providers from instance_group and optimization of a checked configuration; `defaults` where it says
// nothing. Name, version, file and root are the caller's to fill in.
[[nodiscard]] Result<SessionRequest> DescribeSession(const inference::ModelConfig& config,
                                                     const std::vector<ProviderChoice>& defaults);

// That platform and backend, where given, are those of the file.
[[nodiscard]] Status CheckFormat(const inference::ModelConfig& config, const ModelFile& file);

}  // namespace tandem::repository
