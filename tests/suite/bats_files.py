"""Runs the .bats files in pytest: one session, one report, and one way to choose tests.

One `bats` runs a file, and prints each test's result as a line of TAP (test anything protocol) when that test ends.
If a worker has only some of the tests, bats gets their names.
"""

import contextlib
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from suite import schedule

_TEST = re.compile(r"""@test (["'])(.*?)\1 \{""")
_TAGS = re.compile(r"# bats (file|test)_tags=(.*)$")
_MPIRUN = re.compile(r"^ *need [a-z ]*\bmpirun\b", re.M)
_RESULT = re.compile(r"(not )?ok \d+ .*?( # skip ?(.*))?$")
_LIMIT = int(os.environ.get("BATS_LIMIT", "600"))  # seconds for one test: a test that hangs is ended and reported
_LATE = f"no result after {_LIMIT} s (BATS_LIMIT): bats and what it had started were killed"


class BatsFailure(Exception):
    """A bats test failed; the text is the output of bats about it."""


class BatsFile(pytest.File):
    """A file with bats tests."""

    def collect(self):
        """Its tests, with bats' tags as marks, and the mark mpirun if they, or functions that they call, need it."""
        tags, of_file = [], []
        text = self.path.read_text(encoding="utf-8")
        asking = _asking(text)
        for number, line in enumerate(text.splitlines()):
            if found := _TAGS.match(line):
                (of_file if found[1] == "file" else tags).extend(found[2].split(","))
            elif found := _TEST.match(line):
                test = BatsTest.from_parent(self, name=found[2])
                test.line = number
                for tag in [*of_file, *tags]:
                    test.add_marker(tag.strip())
                if number in asking:
                    test.add_marker("mpirun")
                tags = []
                yield test


def _asking(text):
    """The line numbers, from 0, of the tests that need mpirun."""
    parts = [  # (number of its first line, first line, body) of each function and test
        (text.count("\n", 0, found.start()), found[1], found[2])
        for found in re.finditer(r"^(\w+\(\)|@test .*) \{(.*(?:\n(?!\}|\S+\(\) \{|@test ).*)*)", text, re.M)
    ]
    functions = [name[:-2] for _, name, body in parts if name.endswith("()") and _MPIRUN.search(body)]
    asks = re.compile("|".join([_MPIRUN.pattern, *(rf"\b{name}\b" for name in functions)]), re.M)
    tests = [(number, body) for number, name, body in parts if name.startswith("@test")]
    return {number for number, body in tests if "setup" in functions or asks.search(body)}


class BatsTest(pytest.Item):
    """A test of a .bats file."""

    line = 0
    run = None  # the bats that runs it, once it has started

    def runtest(self):
        """Waits for bats' result of this test; the first test of a unit starts bats."""
        if self.run is None:
            units = schedule.units([item.nodeid for item in self.session.items])
            unit = [item for item in self.session.items if units[item.nodeid] == units[self.nodeid]]
            run = BatsRun(self.path, sorted(unit, key=lambda test: test.line))
            self.session.config.add_cleanup(run.end)
            for test in unit:
                test.run = run
        self.run.result_of(self)

    def repr_failure(self, excinfo):
        """The output of bats, without Python's frames."""
        return str(excinfo.value) if isinstance(excinfo.value, BatsFailure) else super().repr_failure(excinfo)

    def reportinfo(self):
        """The location of the test in pytest's reports."""
        return self.path, self.line, self.name


class BatsRun:
    """One `bats` that runs tests of one file, in the order of the file."""

    def __init__(self, path, tests):
        chosen = "|".join(re.sub(r"([][\\.^$*+?(){}|])", r"\\\1", test.name) for test in tests)
        self.left = tests  # without a result
        self.results = {}  # test: (passed, output of bats, why it was skipped)
        self.line = ""  # read, but not assigned to a test yet
        self.late = False  # it was killed, because a test took too long
        self.process = subprocess.Popen(
            ["bats", "--tap", "--filter", f"^({chosen})$", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def result_of(self, test):
        """Returns when the test has passed; raises `BatsFailure` when it has failed, and skips as it does."""
        while test not in self.results:
            first = self.left.pop(0)
            self.results[first] = self._next_result()
            if not self.left:
                self.process.wait(_LIMIT)  # so that the time of bats counts for this file
        passed, said, skipped = self.results[test]
        if not passed:
            raise BatsFailure(said)
        if skipped is not None:
            pytest.skip(skipped)

    def _next_result(self):
        before = self._until_result()
        found = _RESULT.match(self.line)
        if not found:
            return False, f"{_LATE if self.late else 'bats ended without a word of this test'}\n{before}", None
        self.line = ""
        said = ""
        if found[1] or not self.left:  # otherwise the next output belongs to the next test
            said = re.sub("(?m)^# ?", "", self._until_result())
            said += _LATE if self.late else ""
        why_skipped = (found[3] or "no reason is given") if found[2] else None
        return not (found[1] or said), said, why_skipped

    def _until_result(self):
        """The output of bats before its next result, or before its end; `line` has that result."""
        said = []
        timer = threading.Timer(_LIMIT, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            while not _RESULT.match(self.line):
                said.append(self.line)
                self.line = self.process.stdout.readline()
                if not self.line:
                    break
        finally:  # also after Ctrl-C
            timer.cancel()
        return re.sub(r"(?m)^1\.\.\d+\n", "", "".join(said))

    def _give_up(self):
        self.late = True
        for pid in _and_descendants(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end(self):
        """Ends bats, which cleans up, if it still runs."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def _and_descendants(pid):
    """The process and all its descendants, parents first."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            parent = stat.read_text(errors="replace").rpartition(") ")[2].split()[1]
            children.setdefault(int(parent), []).append(int(stat.parent.name))
    found = [pid]
    for one in found:  # grows meanwhile
        found += children.get(one, [])
    return found
