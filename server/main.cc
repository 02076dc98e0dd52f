#include <cstdio>
#include <exception>
#include <string>

#include "server/cli/command.h"

int main(int argc, char** argv) {
  using namespace tandem::cli;
  CLI::App app{"tandem: a model server that gives every request a deadline"};
  app.name("tandem");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  tandem demo\n"
      "  tandem serve --model-repository models\n"
      "  tandem infer squeezenet\n"
      "Each command has its own --help.");
  int exit_code = kDone;
  ReadServeOptionsFromFile(app);
  AddServeCommand(app, exit_code);
  AddDemoCommand(app, exit_code);
  AddModelsCommand(app, exit_code);
  AddInferCommand(app, exit_code);
  AddLoadgenCommand(app, exit_code);
  AddDoctorCommand(app, exit_code);
  AddVersionCommand(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kDone : kUsage;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tandem: %s\n", e.what());
    return kFailed;
  }
  return exit_code;
}
