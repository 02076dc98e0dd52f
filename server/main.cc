#include <cstdio>
#include <exception>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "server/cli/command.h"

namespace {

using namespace tandem::cli;

// A descriptor of the three that whoever started us has closed would go to the next file or connection, and what is
// meant for the terminal into that. Standard output is opened so that writing to it fails, as it would if closed.
void OpenStandardDescriptors(int /*argc*/, char** /*argv*/, char** /*environment*/) {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest that is free is taken, and that is this one: those below are open.
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// Before main(), and before the libraries' own variables are made, some of which open descriptors.
[[gnu::section(".preinit_array"), gnu::used]] void (*const open_standard_descriptors)(int, char**,
                                                                                      char**) = OpenStandardDescriptors;

int Run(int argc, char** argv) {
  CLI::App app{"tandem: a model server that gives every request a deadline"};
  app.name("tandem");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  tandem demo\n"
      "  tandem serve --model-repository models\n"
      "  tandem infer squeezenet\n"
      "  tandem train submit --model squeezenet --data images.npz --epochs 3\n"
      "Each command has its own --help.");
  int exit_code = kDone;
  ReadServeOptionsFromFile(app);
  AddServeCommand(app, exit_code);
  AddDemoCommand(app, exit_code);
  AddModelsCommand(app, exit_code);
  AddInferCommand(app, exit_code);
  AddLoadgenCommand(app, exit_code);
  AddTrainCommand(app, exit_code);
  AddMemoryCommand(app, exit_code);
  AddProfileCommand(app, exit_code);
  AddTraceCommand(app, exit_code);
  AddSimulateCommand(app, exit_code);
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

}  // namespace

int main(int argc, char** argv) {
  const int exit_code = Run(argc, argv);
  // What nobody got must not look like success.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  std::fputs("tandem: the output could not be written\n", stderr);
  return exit_code == kDone ? kFailed : exit_code;
}
