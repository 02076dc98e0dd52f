"""Runs test modules: run_tests.py MODULE… [-k PATTERN]…   Prints the end of the server's log with each failure."""
import argparse
import pathlib
import sys
import time
import unittest


class Result(unittest.TextTestResult):
    def startTest(self, test):
        self.begun = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        seconds = time.monotonic() - self.begun
        if self.showAll and seconds > 2:
            self.stream.writeln(f"    ({seconds:.1f} s)")
        super().stopTest(test)

    def _with_logs(self, test, text):
        for log in test.logs() if hasattr(test, "logs") else ():
            text += f"The server's log ends:\n{log}\n"
        return text

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failures[-1] = (test, self._with_logs(test, self.failures[-1][1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.errors[-1] = (test, self._with_logs(test, self.errors[-1][1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+")
    parser.add_argument("-k", dest="patterns", action="append")
    arguments = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    loader = unittest.TestLoader()
    if arguments.patterns:
        loader.testNamePatterns = [f"*{pattern}*" for pattern in arguments.patterns]
    suite = loader.loadTestsFromNames(arguments.modules)
    if not suite.countTestCases():
        sys.exit("no test matches")
    done = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    sys.exit(0 if done.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
