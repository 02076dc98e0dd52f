"""What every soak has: options with bounds, progress on stderr, figures on stdout."""
import argparse
import json
import pathlib
import sys


def whole(least, most):
    """Takes a whole number between the two, for argparse."""
    def parse(text):
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value} is not from {least} to {most}")
        return value

    return parse


def run_soak(parser, run):
    """The exit code. `run` takes the options and a function that shows progress; its figures have a `passed`."""
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    terminal = sys.stderr.isatty()

    def say(text):
        print(f"\r\033[K{text}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)

    figures = run(options, say)
    if terminal:
        print(file=sys.stderr)
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):<26}{value}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if figures["passed"] else 1
