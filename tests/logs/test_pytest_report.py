"""tools/logs/pytest_report.py: a rank that is a pytest, as the tutorials start theirs, says its exception."""

import os
import subprocess
import sys

import pytest

from tools.logs import log_tail, pytest_report

PATHS = """\
import os

def path_of(environ):
    return environ["DATAPATH"]

def test_training():
    print("one step")
    path_of({})
"""
CHAIN = """\
def test_training():
    try:
        int("x")
    except ValueError as error:
        raise RuntimeError("cannot begin:\\n  the second line") from error
"""
SETUP = """\
import json
import pytest

@pytest.fixture
def net():
    return json.loads("{")

def test_training(net):
    pass

def test_after_it():
    assert 1 == 2
"""
TEARDOWN = """\
import pytest

@pytest.fixture
def net():
    yield 1
    raise OSError("no space left on device")

def test_training(net):
    pass
"""
IMPORT = "import no_such_package\n\ndef test_training():\n    pass\n"
SYNTAX = "def test_training(:\n    pass\n"
ASSERT = "def test_training():\n    ranks = 3\n    assert ranks == 4, 'ranks differ'\n"
PLAIN = "def test_training():\n    ranks = [1, 2]\n    assert ranks == [1, 3]\n"
OWN = "class Stop(Exception):\n    pass\n\ndef test_training():\n    raise Stop\n"
EXIT = "import sys\n\ndef test_training():\n    sys.exit(3)\n"
METHOD = "class TestNet:\n    def test_training(self):\n        1 / 0\n"
TWO = "def test_first():\n    1 / 0\n\ndef test_second():\n    raise ValueError('because of the first')\n"
CASES = [
    (PATHS, "KeyError", "'DATAPATH'", 4),
    (CHAIN, "RuntimeError", "cannot begin:\n  the second line", 5),
    (SETUP, "json.decoder.JSONDecodeError", "Expecting property name", 6),
    (TEARDOWN, "OSError", "no space left on device", 6),
    (IMPORT, "ModuleNotFoundError", "No module named 'no_such_package'", 1),
    (SYNTAX, "SyntaxError", "invalid syntax", 1),
    (ASSERT, "AssertionError", "ranks differ\nassert 3 == 4", 3),
    (PLAIN, "AssertionError", "assert [1, 2] == [1, 3]", 3),
    (OWN, "test_train.Stop", "", 5),
    (EXIT, "SystemExit", "3", 4),
    (METHOD, "ZeroDivisionError", "division by zero", 3),
    (TWO, "ZeroDivisionError", "division by zero", 2),
]
NAMES = ["paths", "chain", "setup", "teardown", "import", "syntax", "assert", "plain", "own", "exit", "method", "two"]

ALONE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # loading what is installed takes longer than the test


@pytest.fixture
def log_of(tmp_path):
    """log_of(source, words): the lines of the log of a pytest that runs `source`."""

    def run(source, *words):
        (tmp_path / "test_train.py").write_text(source)
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
        with (tmp_path / "log").open("w") as file:
            command = [sys.executable, "-m", "pytest", *words, "test_train.py"]
            subprocess.run(
                command, cwd=tmp_path, stderr=subprocess.STDOUT, stdout=file, timeout=120, check=False, env=ALONE
            )
        return log_tail.read(str(tmp_path / "log")).lines

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("source", "kind", "message", "line"), CASES, ids=NAMES)
def test_the_exception_of_a_failed_test_is_named_with_its_line(log_of, source, kind, message, line):
    lines = log_of(source, "-s")
    found = log_tail.last_exception(lines)
    assert (found.type, found.line) == (kind, line)
    assert found.file.endswith("test_train.py")
    assert found.message.startswith(message)
    assert lines[found.row].startswith("E  ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("--tb=short",), ("--tb=native",), ("--tb=line",), ("-v",), ("--color=yes",), ("-q",)]
)
def test_however_pytest_shows_it(log_of, words):
    if words == ("--tb=line",) and pytest.version_tuple < (9,):
        pytest.skip("pytest 9 is the first that shows the exception with --tb=line, too")
    found = log_tail.last_exception(log_of(PATHS, *words))
    assert (found.text, found.line) == ("KeyError: 'DATAPATH'", 4)
    assert found.file.endswith("test_train.py")


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--tb=short",)])
def test_the_function_is_known_too(log_of, words):
    assert log_tail.last_exception(log_of(PATHS, *words)).function == "path_of"


@pytest.mark.slow
def test_without_a_report_the_summary_names_the_test(log_of):
    lines = log_of(PATHS, "--tb=no")
    assert log_tail.last_exception(lines) is None
    assert pytest_report.summary(lines) == ["FAILED test_train.py::test_training - KeyError: 'DATAPATH'"]


@pytest.mark.slow
def test_what_a_test_prints_is_not_its_exception(log_of):
    printed = "def test_training():\n    print('E   KeyError: 1')\n    print('a.py:9: KeyError')\n    1 / 0\n"
    found = log_tail.last_exception(log_of(printed))
    assert (found.type, found.line) == ("ZeroDivisionError", 4)


@pytest.mark.slow
def test_the_last_word_counts(log_of):
    lines = log_of(PATHS, "-s")
    later = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "ValueError: later"]
    assert log_tail.last_exception([*later, *lines]).type == "KeyError"
    assert log_tail.last_exception([*lines, *later]).type == "ValueError"


@pytest.mark.slow
def test_tests_that_passed_say_nothing(log_of):
    lines = log_of("def test_training():\n    print('E   KeyError: 1')\n", "-s")
    assert log_tail.last_exception(lines) is None and pytest_report.summary(lines) == []


@pytest.mark.slow
def test_the_source_that_pytest_shows_is_no_event(log_of):
    source = "def test_training():\n    if False:\n        raise OSError('No space left on device')\n    1 / 0\n"
    lines = log_of(source, "-s")
    assert any("No space left" in line for line in lines)
    assert not any("No space left" in line for line in log_tail.without_source(lines))


def test_a_banner_of_another_program_hides_nothing():
    lines = ["===== ERRORS =====", "RuntimeError: out of memory", "[ERROR] EI0006 socket timeout"]
    assert log_tail.without_source(lines) == lines


@pytest.mark.slow
def test_many_failed_tests_without_a_place_take_no_time():
    """To look for each place up to the end of the log would take minutes: the suite's limit of time ends it."""
    assert pytest_report.exception(["= FAILURES =", *["_ t _", "E   X: y"] * 40_000]) is None


@pytest.mark.slow
def test_a_report_that_breaks_off(log_of):
    lines = log_of(PATHS, "-s")
    for end in range(len(lines)):
        log_tail.last_exception(lines[:end])
        log_tail.without_source(lines[:end])
    for begin in range(len(lines)):
        log_tail.last_exception(lines[begin:])
