"""pytest runs the .bats files, too: one session, one report, and one way to choose tests.

A file is run by one `bats`, which tells each test's result by a line of TAP (test anything protocol) when that test
ends.  Where a worker has only some of the tests, bats gets their names.
"""

import re
import subprocess

import pytest
from suite import schedule

_TEST = re.compile(r"""@test (["'])(.*?)\1 \{""")
_TAGS = re.compile(r"# bats (file|test)_tags=(.*)$")
_RESULT = re.compile(r"(not )?ok \d+ .*?( # skip ?(.*))?$")


class BatsFailure(Exception):
    """A bats test failed; the text is what bats said of it."""


class BatsFile(pytest.File):
    """A file of tests for bats."""

    def collect(self):
        """Its tests, with bats' tags as marks."""
        tags, of_file = [], []
        lines = self.path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if found := _TAGS.match(line):
                (of_file if found[1] == "file" else tags).extend(found[2].split(","))
            elif found := _TEST.match(line):
                test = BatsTest.from_parent(self, name=found[2])
                test.line = number
                for tag in [*of_file, *tags]:
                    test.add_marker(tag.strip())
                tags = []
                yield test


class BatsTest(pytest.Item):
    """A test of a .bats file."""

    line = 0
    run = None  # the bats that runs it, if that runs already

    def runtest(self):
        """Waits for bats' word of this test; the first test of a unit starts bats."""
        if self.run is None:
            units = schedule.units([item.nodeid for item in self.session.items])
            mine = [item for item in self.session.items if units[item.nodeid] == units[self.nodeid]]
            run = BatsRun(self.path, [test.name for test in mine])
            self.session.config.add_cleanup(run.end)
            for test in mine:
                test.run = run
        self.run.expect_next()

    def repr_failure(self, excinfo):
        """What bats said, without Python's frames."""
        return str(excinfo.value) if isinstance(excinfo.value, BatsFailure) else super().repr_failure(excinfo)

    def reportinfo(self):
        """Where pytest says that the test is."""
        return self.path, self.line, self.name


class BatsRun:
    """One `bats` that runs tests of one file, in their order."""

    def __init__(self, path, names):
        chosen = "|".join(re.sub(r"([][\\.^$*+?(){}|])", r"\\\1", name) for name in names)
        self.left = len(names)
        self.line = ""  # read, but not yet of any test
        self.process = subprocess.Popen(
            ["bats", "--tap", "--filter", f"^({chosen})$", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def expect_next(self):
        """Returns when the next test has passed; raises `BatsFailure` when it has failed, and skips as it does."""
        before = self._until_result()
        found = _RESULT.match(self.line)
        if not found:
            raise BatsFailure(f"bats ended without a word of this test:\n{before}")
        self.line = ""
        self.left -= 1
        if found[1] or not self.left:
            said = self._until_result()
            if found[1] or said:
                raise BatsFailure(re.sub("(?m)^# ?", "", said))
        if found[2]:
            pytest.skip(found[3] or "no reason is given")

    def _until_result(self):
        """What bats prints before its next result, or before its end; that result is in `line`."""
        said = []
        while not _RESULT.match(self.line):
            said.append(self.line)
            self.line = self.process.stdout.readline()
            if not self.line:
                break
        return re.sub(r"(?m)^1\.\.\d+\n", "", "".join(said))

    def end(self):
        """Ends bats, which cleans up, if it still runs."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
