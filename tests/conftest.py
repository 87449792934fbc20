"""One session for all tests: pytest for the Python, bats for the scripts."""

import functools
import gc
import inspect
import os
import re
import shutil
import sys

import pytest
from suite import costs, open_mpi, summary
from suite.bats_files import BatsFile

pytest_plugins = ["suite.fixtures"]
_MPIRUN = pytest.StashKey[str]()  # a sentence about the mpirun of the tests
# What the bare profile hides (tests/bare.sh), and the scripts and hosts that need it.
_HIDDEN = re.compile(
    r"mpi(run|exec)|open mpi|\b(orte|prte)|\bs(run|alloc|batch|control)\b|slurm|\bsshd?\b|munge"
    r"|\bip (link|address|route|netns)\b|\bip\"|need .*\bip\b|\blab\b|lab_(up|of)",
    re.IGNORECASE,
)
_USED = pytest.StashKey[float]()  # processor seconds before the test
_LEFT = pytest.StashKey[set]()  # folders that killed mpiruns had left before the tests


def pytest_configure(config):
    """All tests, and the workers, get this Python's programs first on PATH, and the mpirun that OPEN_MPI chooses."""
    if hasattr(config, "workerinput"):
        return
    speak_english()
    keep_bytecode()
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    try:
        config.stash[_MPIRUN] = open_mpi.use()
    except open_mpi.NoSuchVersion as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[_LEFT] = open_mpi.left_behind()


def speak_english():
    """The tests compare English messages, whatever the locale of the person who runs them."""
    for name in ("LAUNCH_LANG", "LANGUAGE", "MSLAUNCH_OPTIONS"):
        os.environ.pop(name, None)
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name, "").startswith("zh"):
            os.environ[name] = "C.UTF-8"


def keep_bytecode():
    """Images of containers often forbid it; then thousands of programs and all workers compile the same files."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    """Says which Open MPI it is; pytest's own head is not shown with -q."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and not hasattr(session.config, "workerinput"):
        reporter.write_line(f"tests of mpirun use: {session.config.stash[_MPIRUN]}")


@functools.cache
def names_what_is_hidden(path):
    """Whether a file of tests has a word for a program that the bare profile hides.  No other file can presume one."""
    return _HIDDEN.search(path.read_text(encoding="utf-8")) is not None


@functools.cache
def asks_for_mpirun(function):
    """Whether the source of a test in Python does."""
    return function is not None and re.search(r"\bneeds?\(.*\"mpirun\"", inspect.getsource(function)) is not None


def pytest_collect_file(file_path, parent):
    """A .bats file is a file of tests, too."""
    if file_path.suffix == ".bats":
        return BatsFile.from_parent(parent, path=file_path)
    return None


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(config, items):
    """Gives the marks that are found in the source, if somebody chooses by them.

    Long tests come first: the workers end together.
    """
    if "mpirun" in config.option.markexpr:
        for item in items:
            if "run_mpirun" in item.nodeid or asks_for_mpirun(getattr(item, "function", None)):
                item.add_marker("mpirun")
    if "hidden" in config.option.markexpr:
        for item in items:
            if names_what_is_hidden(item.path):
                item.add_marker("hidden")
    items.sort(key=lambda item: [item.get_closest_marker(mark) is None for mark in ("trains", "thorough", "slow")])


def pytest_collection_finish():
    """Thousands of tests stay until the end, so Python's collector need not look at them."""
    gc.freeze()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol():
    """A test leaves the environment as it was: some code sets variables, with which the next test would start."""
    before, had_mindspore = dict(os.environ), "mindspore" in sys.modules
    yield
    os.environ.clear()
    os.environ.update(before)
    if "mindspore" in sys.modules and not had_mindspore:
        gc.freeze()  # see tools/trainer/job.py


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Notes what this process has used before the test."""
    item.stash[_USED] = costs.used()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    """The test's last report says what the test has cost."""
    if call.when == "teardown":
        item.user_properties.append((costs.NAME, costs.used() - item.stash[_USED]))


def pytest_runtest_logreport(report):
    """Counts the costs, in the process that prints."""
    costs.add(report)


def pytest_xdist_auto_num_workers(config):
    """Three times the processors: most tests of launches wait for events, and few compute.

    Fast tests hardly wait, and each worker takes seconds to collect all tests: then one more than the processors.
    """
    processors = len(os.sched_getaffinity(0))
    return processors + 1 if "not slow" in config.option.markexpr else 3 * processors


def pytest_xdist_make_scheduler(config, log):
    """Workers get units of tests, most of them whole files."""
    from suite.schedule import ByUnit

    return ByUnit(config, log)


def pytest_terminal_summary(terminalreporter, config):
    """What was asked, and what was skipped; what the tests have cost, and with --durations=N which files most."""
    summary.asked(terminalreporter, config.stash.get(_MPIRUN, "no mpirun"))
    summary.skipped(terminalreporter)
    for line in costs.lines(config.option.durations):
        terminalreporter.write_line(line)


def pytest_unconfigure(config):
    """Removes what mpiruns left that the tests have killed; prints the last line."""
    for path in open_mpi.left_behind() - config.stash.get(_LEFT, open_mpi.left_behind()):
        shutil.rmtree(path, ignore_errors=True)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter and not hasattr(config, "workerinput"):
        summary.last_line(reporter)
