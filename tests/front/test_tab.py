"""What TAB offers: in-process, as the shells ask."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from suite.cases import for_each

from hccl_tools.common import project, typed
from tools.command import table
from tools.front import commands
from tools.front.tab import answer, offer, offers, script, values


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("SLURM", "KUBERNETES", "RANK_TABLE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(typed._Typed, "front", ("mslaunch",))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(line, way="front", shell="bash", replaced=None):
    """(kind that the shell lists itself, what is offered)"""
    if replaced is None:
        replaced = answer.read(line).raw
    native, *lines = answer.answer(shell, way, line, replaced)
    return native.partition(" ")[2], [each.partition(" ")[2] for each in lines]


def offered(line, *more, **some):
    return asked(line, *more, **some)[1]


@for_each(
    "line, expected",
    [
        ("mslaunch wat", ["watch"]),
        ("mslaunch ascend", ["ascend1p", "ascend2p", "ascend4p", "ascend8p"]),
        ("mslaunch hel", ["help"]),
        ("mslaunch table ", ["build", "check", "merge", "show", "convert", "diff"]),
        ("mslaunch prepare d", ["digits"]),
        ("mslaunch table build --visible-d", ["--visible-devices"]),
        ("mslaunch table convert --t", ["--to"]),
        ("mslaunch table convert --to ", ["1.0", "1.1", "1.2", "2.0", "lab", "cloud", "hosts"]),
        ("mslaunch table convert --to=l", ["--to=lab"]),
        ("mslaunch runs cl", ["clean"]),
        ("mslaunch runs clean ", []),
        ("mslaunch network --pi", ["--ping"]),
        ("mslaunch doctor --lang ", ["zh", "en"]),
        ("mslaunch help restar", ["restarts"]),
        ("mslaunch --help diagn", ["diagnose"]),
        ("mslaunch help restarts ", []),
        ("mslaunch --completion ", ["bash", "zsh"]),
        ("mslaunch --completion=z", ["--completion=zsh"]),
        ("mslaunch --comp", ["--completion"]),
        ("mslaunch ascend8p --comp", []),
        ("mslaunch -- --dev", []),
        ("mslaunch unknown_word --dev", ["--device_target", "--devices"]),
    ],
)
def test_commands_and_their_options(line, expected):
    assert offered(line) == expected


@for_each(
    "line, expected",
    [
        ("mslaunch --dev", ["--device_target", "--devices"]),
        ("mslaunch --device-", ["--device-target"]),
        ("mslaunch -n 8 --log_dir x --dev", ["--device_target", "--devices"]),
        ("mslaunch --bogus --dev", ["--device_target", "--devices"]),
        ("mslaunch --timeout --dev", []),
        ("mslaunch --device_target ", ["Ascend", "GPU", "CPU"]),
        ("mslaunch --device-target C", ["CPU"]),
        ("mslaunch --console=", ["--console=0", "--console=all", "--console=table", "--console=none"]),
        ("mslaunch --lang z", ["zh"]),
        ("mslaunch --engine s", ["srun"]),
        ("mslaunch --host", ["--hostfile", "--hosts"]),
        ("mslaunch --networ", []),
        ("mslaunch --hostfile hosts --networ", ["--network"]),
        ("mslaunch --engine mpirun --networ", ["--network"]),
        ("mslaunch run_mpirun_2 --networ", ["--network"]),
        ("mslaunch --engine bogus --dry", ["--dry_run"]),
        ("mslaunch --bind_core ", ["True", "False"]),
        ("mslaunch --bind_core --qui", ["--quiet"]),
        ("mslaunch --quiet --dry", ["--dry_run"]),
        ("mslaunch ascend4p x.yaml --dry", ["--dry_run"]),
        ("mslaunch run_pipeline data G", ["GPU"]),
        ('mslaunch --log_dir "a b" --dry', ["--dry_run"]),
        ("mslaunch --log_dir 'a --dry", []),
    ],
)
def test_options_of_a_launch_and_their_values(line, expected):
    assert offered(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "mslaunch train.py --dev",
        "mslaunch -n 2 -m package --dev",
        "mslaunch -n 2 python train.py --console ",
        "mslaunch x.yaml -- --dev",
        "mslaunch ascend4p train.py wat",
        "mslaunch run data 8 start.sh --dev",
    ],
)
def test_the_words_of_a_program_are_its_own(line):
    assert asked(line) == ("files", [])


@for_each(
    "line, kind",
    [
        ("mslaunch --log_dir ", "folders"),
        ("mslaunch --rank_table=", "files"),
        ("mslaunch -H ", "hosts"),
        ("mslaunch run_mpirun_1 ", "hosts"),
        ("mslaunch run_mpirun_2 ", "files"),
        ("mslaunch -n ", "nothing"),
        ("mslaunch -np ", "files"),
        ("mslaunch x.yaml ", "nothing"),
        ("mslaunch ", "programs"),
        ("mslaunch --config ", "configs"),
        ("mslaunch eval -c ", "configs"),
        ("mslaunch table diff ", "files"),
        ("mslaunch table merge a.json ", "files"),
        ("mslaunch network ", "files"),
        ("mslaunch watch ", "folders"),
        ("mslaunch diagnose ", "files"),
        ("mslaunch watch --every ", "nothing"),
    ],
)
def test_what_the_shell_itself_lists(line, kind):
    assert asked(line)[0] == kind


def test_programs_configs_and_folders(here):
    for name in ("train.py", "train.yaml", "train.json", "tool", ".hidden.py"):
        (here / name).touch()
    (here / "tool").chmod(0o755)
    (here / "sub").mkdir()
    (here / "sub" / "deep.py").touch()
    (here / "lost.py").symlink_to("nowhere")
    assert offered("mslaunch ascend8p ") == ["lost.py", "sub", "tool", "train.py", "train.yaml"]
    assert offered("mslaunch ascend8p .") == [".hidden.py"]
    assert offered("mslaunch sub/") == ["sub/deep.py"]
    assert offered("mslaunch nowhere/") == []
    assert offered("mslaunch --config tr") == ["train.yaml"]
    assert offered("mslaunch --config=tr") == ["--config=train.yaml"]
    assert asked("mslaunch --config tr", shell="zsh") == ("configs", [])


def test_runs(here):
    for name in ("b", "a", "no run"):
        (here / "logs" / name).mkdir(parents=True)
    for name in ("a", "b"):
        (here / "logs" / name / "launch.json").touch()
    (here / "logs" / "latest").symlink_to("b")
    runs = ["logs/a", "logs/b", "logs/latest"]
    assert offered("mslaunch watch ") == offered("mslaunch report logs/a lo") == runs
    assert offered("mslaunch plot logs/l") == ["logs/latest"]
    assert offered("mslaunch --resume=logs/l") == ["--resume=logs/latest"]
    assert offered("mslaunch --resume ")[:3] == runs
    (here / "logs").rename(here / "other")
    assert offered("mslaunch --log_dir other --resume=other/a") == ["--resume=other/a"]


@pytest.mark.parametrize("name", ["x\ny.py", "x\x1b[31m.py", "x\u202e.py", os.fsdecode(b"x\xff.py")])
def test_a_name_that_could_command_a_terminal_is_left_out(here, name):
    (here / name).touch()
    (here / "x z.py").touch()
    assert offered("mslaunch x") == ["x z.py"]


def test_only_what_the_shell_replaces_is_sent():
    assert offered("mslaunch --console=al", replaced="al") == ["all"]
    assert offered("mslaunch --console=", replaced="") == ["0", "all", "table", "none"]
    assert offered('mslaunch --console="al', replaced='"al') == ["all"]


@pytest.mark.parametrize(
    "line, words, last",
    [
        ("a b", ["a"], "b"),
        ("a b ", ["a", "b"], ""),
        ("a  'b c' d\\ e", ["a", "b c"], "d e"),
        ('a "b \\" \\x c"d ', ["a", 'b " \\x cd'], ""),
        ("a '' b\\", ["a", ""], "b"),
        ("a 'open $(x) \\", ["a"], "open $(x) \\"),
        ("", [], ""),
    ],
)
def test_words_are_read_as_a_shell_does(line, words, last):
    typed = answer.read(line)
    assert (typed.words, typed.last) == (words, last)


def test_a_command_of_the_checkout_is_found_in_the_line(here):
    script = project.path("scripts", "ascend4p.sh")
    assert offered(f"bash -x {script} --dev", "file") == ["--device_target", "--devices"]
    assert offered(f"python {project.path('tools', 'watch.py')} --on", "file") == ["--once"]
    assert offered(f"python {project.path('hccl_tools', 'check_network.py')} --pi", "file") == ["--ping"]
    assert asked(f"bash {here}/other.sh --dev", "file") == ("files", [])


def test_every_command_has_options():
    for name in commands.names():
        seconds = commands.groups().get(name, [""])
        for second in seconds:
            assert name == "help" or "--version" in offered(f"mslaunch {name} {second} --"), (name, second)


@pytest.mark.parametrize(
    "takes, expected",
    [("a|b", ["a", "b"]), ("[True|False]", ["True", "False"]), ("{a,b}", ["a", "b"]), ("RUN|FILE", []), ("FILE", [])],
)
def test_choices(takes, expected):
    assert values.choices(takes) == expected


# what only the user knows
_UNKNOWN = {"N", "NAME", "NAMES", "MIB", "SECONDS", "ID", "IP", "LIST", "RANGE", "TEXT", "CODE", "KEY=VALUE", "FACTOR"}
_UNKNOWN |= {"PORT", "WORDS", "[MODULES]"}


def test_what_is_known_of_each_value():
    """A new word in --help: say in values.py what it is, or here that nobody knows."""
    rows = [line.split("\t")[2] for line in Path(offers.PATH).read_text("utf-8").splitlines()]
    tables = [
        *rows,
        *(option.takes for option in table.of([key.partition(" ")[0] for key in table.NAMED], ()).values()),
    ]
    for takes in filter(None, tables):
        first = takes.partition(" ")[0]
        known = (
            first in _UNKNOWN or first == "-" or values.choices(first) or values.of(first, "").native != offer.NOTHING
        )
        assert known, takes


_WORDS = ["--resume", "--bind_core", "-n", "-H", "-x", "--bogus", "--", "-", "=", "x.yaml", "x.py", "table", "watch"]
_WORDS += ["ascend4p", "--log_dir=", "--mca", "-m", "'", '"a', "\\", "--nnodes", "run_cluster", "8", "--completion"]


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # other tests run at the same time
@given(
    st.lists(
        st.one_of(st.sampled_from(_WORDS), st.text(st.characters(exclude_characters="\0"), max_size=5)), max_size=12
    )
)
def test_no_line_is_too_strange(words):
    line = " ".join(["mslaunch", *words])
    for shell in offers.SHELLS:
        for each in answer.answer(shell, "front", line, ""):
            assert each.isprintable() or "\t" in each


def test_an_answer_imports_little_and_heeds_no_variable_of_python(here):
    (here / "shlex.py").write_text("raise SystemExit('theirs')")
    told = script.text("bash").partition("\n")[0]
    python, *rest = shlex.split(told.partition("(")[2].rstrip(")"))
    for line in ("mslaunch --dev", "mslaunch watch --on"):
        ended = subprocess.run(
            [python, "-X", "importtime", *rest, "bash", "front", line, ""],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(here)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert "word " in ended.stdout
        imported = {row.rpartition("|")[2].strip() for row in ended.stderr.splitlines()}
        assert not imported & {"argparse", "json", "typing", "dataclasses", "gettext", "subprocess", "yaml"}
