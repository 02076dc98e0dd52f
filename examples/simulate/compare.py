#!/usr/bin/env python3
"""What a simulation says beside what a benchmark measured, as a table in Markdown.

    ./tandem bench colocation --json measured.json
    ./tandem simulate examples/simulate/squeezenet_cpu.json --json simulated.json
    python3 examples/simulate/compare.py measured.json simulated.json

A case of the scenario is compared with the cells of its name: "load 0.3" with "squeezenet beside squeezenet, load 0.3,
POLICY". In bold: further off than --within. What the benchmark did not measure, or the scenario does not have, is left out.
"""
import argparse
import json
import sys

P99 = "p99 beside training ÷ alone"
TRAINING = "training ÷ what is left of it alone"
HEAD = ("cell", "policy", "p99 ÷ alone, simulated", "measured (low – high)", "error", "training ÷ left, simulated",
        "measured (low – high)", "error")


def read(file, take):
    """What `take` finds in a JSON file."""
    try:
        with open(file, encoding="utf-8") as text:
            return take(json.load(text))
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, ZeroDivisionError) as e:
        sys.stderr.write(f"{file} is not what it should be: {type(e).__name__}: {e}\n")
        sys.exit(2)


def measured_rows(report, cells):
    """{(case, policy): {metric: row}} of what was measured, in its order."""
    found = {}
    for row in report["rows"]:
        first, _, rest = row["cell"].partition(", ")
        case, _, policy = rest.rpartition(", ")
        if first == cells and case and row["metric"] in (P99, TRAINING) and row["value"] is not None:
            found.setdefault((case, policy), {})[row["metric"]] = row
    return {place: rows for place, rows in found.items() if len(rows) == 2}


def simulated_figures(figures):
    """{(case, policy): {metric: value}}; of the first model and the first trainer."""
    found = {}
    for case in figures["cases"]:
        alone = case["requests_alone"]["models"][0]["p99_ms"]
        for under in case["policies"]:
            found[case.get("name", figures.get("scenario")), under["policy"]] = {
                P99: under["models"][0]["p99_ms"] / alone,
                TRAINING: under["trainers"][0]["of_what_is_left"]
            }
    return found


def cells_of(value, row, within):
    """Simulated, measured and the error as they stand in the table, and whether it is within the bound."""
    error = 100 * (value / row["value"] - 1)
    text = f"{error:+.0f} %".replace("-", "−")
    spread = f"{row['value']:.3g} ({row['low']:.3g} – {row['high']:.3g})"
    good = abs(error) <= within
    return [f"{value:.3g}", spread, text if good else f"**{text}**"], good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", help="what ./tandem bench colocation --json wrote")
    parser.add_argument("simulated", help="what ./tandem simulate --json wrote")
    parser.add_argument("--cells", default="squeezenet beside squeezenet", help="how the benchmark's cells begin")
    parser.add_argument("--within", type=float, default=15, help="the bound of the error, in %%")
    options = parser.parse_args()
    measured = read(options.measured, lambda report: measured_rows(report, options.cells))
    simulated = read(options.simulated, simulated_figures)
    rows, counts = [], {}
    for (case, policy), row in measured.items():
        if (case, policy) not in simulated:
            continue
        line = [case, policy]
        for metric in (P99, TRAINING):
            texts, good = cells_of(simulated[case, policy][metric], row[metric], options.within)
            line += texts
            counts.setdefault(case, []).append(good)
        rows.append(line)
    if not rows:
        sys.stderr.write(f"{options.measured} has no figure of '{options.cells}' that {options.simulated} has, too\n")
        sys.exit(2)
    for line in (HEAD, ("---", "---", "---:", "---:", "---:", "---:", "---:", "---:"), *rows):
        print("|" + "|".join(line if line[0] == "---" else (f" {text} " for text in line)) + "|")
    every = [good for of_case in counts.values() for good in of_case]
    parts = ", ".join(f"{sum(good)} of {len(good)} at {case}" for case, good in counts.items())
    print(f"\n{sum(every)} of {len(every)} figures are within {options.within:g} %: {parts}.")


if __name__ == "__main__":
    main()
