"""MSLAUNCH_OPTIONS: options from the environment, for every launch."""

import shlex

import pytest
from command_lines import declared

from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from tools.command import defaults, language
from tools.command.command import read
from tools.launch.request import Request


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("config.yaml", "train.py"):
        (tmp_path / name).touch()


def with_defaults(text, script, typed):
    return read(declared(script), shlex.split(typed), {"MSLAUNCH_OPTIONS": text})


@pytest.mark.parametrize(
    ("text", "typed", "kept", "expected"),
    [
        ("--bind_core --report", "config.yaml", "--bind_core --report", {"bind_core": "1"}),
        ("--bind_core", "--bind_core=False config.yaml", "", {"bind_core": ""}),
        ("--bind_core=False", "config.yaml", "--bind_core=False", {"bind_core": ""}),
        ("--import_once", "config.yaml", "--import_once=auto", {"import_once": "auto"}),
        ("--report --log_dir 'a b'", "--report=False config.yaml", r"--log_dir a\ b", {"log_dir": "a b"}),
        ("--log-dir=x --log_dir y", "config.yaml", "--log_dir x --log_dir y", {"log_dir": "y"}),
        ("--log_dir x", "--log_dir z config.yaml", "", {"log_dir": "z"}),
        ("--timeout 1h --quiet", "config.yaml", "--timeout 3600 --quiet", {"quiet": True}),
        ("--keep_going", "--max_restarts 2 config.yaml", "", {"max_restarts": 2}),
        (
            "--max_restarts 2 --restart_args x",
            "--keep_going config.yaml",
            "",
            {"max_restarts": 0, "restart_args": None},
        ),
        ("--max_restarts 2", "--max_restarts 3 --restart_args x config.yaml", "", {"max_restarts": 3}),
        ("--restart_args x", "--max_restarts 3 config.yaml", "--restart_args x", {"restart_args": "x"}),
        ("--bind_core", "--bind_numa config.yaml", "", {"bind_core": None, "bind_numa": "1"}),
        ("-n 4 --hostfile h --pod_wait 5", "config.yaml", "", {"n": None, "hostfile": None, "pod_wait": None}),
        ("--report", "--no_defaults config.yaml", "", {}),
        ("--report", "--no-defaults config.yaml", "", {}),
        ("  ", "config.yaml", "", {}),
    ],
)
def test_options_hold_unless_others_are_typed(text, typed, kept, expected):
    found = with_defaults(text, "ascend2p.sh", typed)
    asked = Request.from_words(found.words)
    assert defaults.shown(found.defaults) == asked.defaults == kept
    assert {name: getattr(asked, name) for name in expected} == expected
    assert found.settings.report == ("--report" in kept)


@pytest.mark.parametrize(
    ("text", "typed", "ranks", "devices"),
    [
        ("-n 4", "train.py", 4, None),
        ("-n=4", "-n 2 train.py", 2, None),
        ("-n 4", "-np2 train.py", 2, None),
        ("-n 4", "--nproc_per_node 2 train.py", 2, None),
        ("--devices 0-3", "-n 2 train.py", 2, None),
        ("-n 4", "--devices 0,1 train.py", None, "0,1"),
    ],
)
def test_numbers_of_ranks(text, typed, ranks, devices):
    asked = Request.from_words(with_defaults(text, "launch.sh", typed).words)
    assert (asked.n, asked.devices) == (ranks, devices)


def test_hosts_that_are_an_argument_win():
    found = with_defaults("--hostfile h", "run_mpirun_1.sh", "a:2 train.py")
    assert (found.defaults, Request.from_words(found.words).hosts) == ((), "a:2")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("--reprot", "unknown option --reprot; did you mean --report?"),
        ("--n 4", "unknown option --n"),
        ("-np 4", "unknown option -np"),
        ("-x A=1", "unknown option -x"),
        ("train.py", "train.py is not an option; type programs, configs and their arguments"),
        ("--quiet -- x", "-- is not an option"),
        ("--config c.yaml", "--config is for a single launch; type it in the command"),
        ("--zoo", "--zoo is for a single launch"),
        ("--help", "--help is for a single launch"),
        ("--log_dir", "--log_dir needs a value: --log_dir DIR"),
        ("--timeout soon", "--timeout soon is not a time: "),
        ("--log_dir 'x", "a quote is not closed: --log_dir 'x"),
        ("--quiet=5", "--quiet takes no value"),
        ("--\33[2J", r"unknown option $'--\E[2J'"),
    ],
)
def test_a_mistake_names_the_variable(text, fault):
    with pytest.raises(Refusal) as refusal:
        with_defaults(text, "launch.sh", "-n 2 train.py")
    (line,) = refusal.value.lines
    assert refusal.value.status == USAGE
    assert line.startswith(f"MSLAUNCH_OPTIONS: {fault}") and line.isprintable()


def test_a_refusal_says_where_its_option_comes_from():
    with pytest.raises(Refusal) as refusal:
        with_defaults("--leftovers x --quiet", "launch.sh", "-n 2 train.py")
    told = "from MSLAUNCH_OPTIONS: --leftovers x --quiet; --no_defaults ignores them"
    assert refusal.value.lines[0].startswith("--leftovers x: write one of wait, end")
    assert refusal.value.lines[1:] == (told,)
    other = Refusal(REFUSED, "no such file")
    assert defaults.blamed(other, ["--quiet"]) is other
    with pytest.raises(Refusal) as refusal:
        with_defaults("--quiet", "launch.sh", "-n 2 nothing here")
    assert len(refusal.value.lines) == 1


@pytest.mark.parametrize(
    ("words", "environ", "found"),
    [
        (["c.yaml"], {"MSLAUNCH_OPTIONS": "--report --lang zh"}, "zh"),
        (["--lang", "en"], {"MSLAUNCH_OPTIONS": "--lang zh"}, "en"),
        (["--no-defaults"], {"MSLAUNCH_OPTIONS": "--lang zh"}, ""),
        (["c.yaml"], {"MSLAUNCH_OPTIONS": "--lang zh", "LAUNCH_LANG": "en"}, "zh"),
    ],
)
def test_the_language_may_be_one_of_them(words, environ, found):
    assert language.exported(words, environ) == found
