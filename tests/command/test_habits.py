"""What people are used to type: times with units, ~ in paths, flags that are taken back."""

import os

import pytest
from command_lines import command, declared, request
from launch import launching
from suite.cases import for_each

from hccl_tools.common import project, words
from hccl_tools.common.command_line import Parser
from hccl_tools.common.numbers import seconds
from hccl_tools.common.refusal import USAGE, Refusal
from tools.command import help as help_page
from tools.command.command import read
from tools.launch import checks
from tools.launch.request import Request


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")
    for name in ("config.yaml", "train.py"):
        (tmp_path / name).touch()
    return tmp_path


@for_each(
    "text, number",
    [
        ("0", 0),
        ("007", 7),
        ("90s", 90),
        ("10m", 600),
        ("2H", 7200),
        ("1h30m", 5400),
        ("1d", 86400),
        ("1d1h1m1s", 90061),
        *(
            (wrong, None)
            for wrong in ("", "s", "m5", "5x", "5m5", "5m5m", "5s5m", "1.5h", "-5m", "+5", " 5", "٤m", "5 m")
        ),
        ("9" * 5000 + "d", None),
    ],
)
def test_a_time_in_seconds(text, number):
    assert seconds(text) == number


def test_a_time_has_bounds():
    assert [seconds("1m", 60, 60), seconds("1m", 61), seconds("1m", 0, 59), seconds("5", 6)] == [60, None, None, None]


def test_times_with_units_wherever_an_option_takes_seconds():
    found = command("ascend2p.sh", "--timeout 1h30m --hang-timeout=10m --grace 1m config.yaml").settings
    assert (found.timeout, found.hang_timeout, found.grace) == (5400, 600, 60)
    assert request("run_pod.sh", "--pod_wait=1h config.yaml").pod_wait == 3600
    assert command("run_msrun.sh", "--cluster_time_out 2h train.py").environment == {"MS_TOPO_TIMEOUT": "7200"}
    quoted = command("msrun_launcher.sh", "'python net.py' 4 8119 out True 5m")
    assert quoted.environment == {"MS_TOPO_TIMEOUT": "300"}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("~", "/home/ann"),
        ("~/x", "/home/ann/x"),
        ("~root/x", os.path.expanduser("~root") + "/x"),
        ("~no_such_user/x", "~no_such_user/x"),
        ("./~/x", "./~/x"),
        ("x~", "x~"),
    ],
)
def test_the_home_folder_in_a_path(text, path):
    assert words.with_home(text) == path


@pytest.mark.parametrize(
    ("script", "words", "field", "path"),
    [
        ("ascend2p.sh", "--log_dir=~/logs config.yaml", "log_dir", "/home/ann/logs"),
        ("ascend2p.sh", "--rank-table=~/t.json config.yaml", "rank_table", "/home/ann/t.json"),
        ("ascend2p.sh", "--rank_files=~/a,b,~/c train.py", "rank_files", "/home/ann/a,b,/home/ann/c"),
        ("launch.sh", "--metrics=~/m.prom train.py", "metrics", "/home/ann/m.prom"),
        ("ascend2p.sh", "'~/c.yaml'", "config", "/home/ann/c.yaml"),
        ("run.sh", "'~/data' 8", "data_path", "/home/ann/data"),
        ("launch.sh", "--rank_table_file=~/t.json train.py", "rank_table", "/home/ann/t.json"),
        ("run_mpirun.sh", "--hostfile=~/hosts train.py", "hostfile", "/home/ann/hosts"),
        ("run_mpirun.sh", "--output-filename=~/out train.py", "output_filename", "/home/ann/out"),
        ("ascend2p.sh", "--restart_args=~/x --max_restarts 1 config.yaml", "restart_args", "~/x"),
    ],
)
def test_the_home_folder_in_options_and_arguments(script, words, field, path):
    assert getattr(request(script, words), field) == path


def test_the_home_folder_in_the_name_of_a_program_and_not_in_its_words():
    found = Request.from_words(command("launch.sh", "-n 2 '~/t.py' --data=~/d '~/e'").words)
    assert found.trainer_arguments == ("/home/ann/t.py", "--data=~/d", "~/e")


def test_the_home_folder_in_options_of_python_commands():
    parser = Parser("x.py")
    for name, value in (("--output", "FILE"), ("--name", "TEXT")):
        parser.add_argument(name, metavar=value)
    found = parser.parse_args(["--output=~/t.json", "--name=~/t"])
    assert (found.output, found.name) == ("/home/ann/t.json", "~/t")


def test_a_flag_can_be_taken_back():
    found = command("ascend2p.sh", "--quiet --quiet=False --no_check=true --report=false config.yaml")
    assert (found.settings.quiet, found.settings.report) == (False, False)
    asked = Request.from_words(found.words)
    assert (asked.quiet, asked.no_check) == (False, True)


@pytest.mark.parametrize(
    ("console", "world", "missing"), [("0,3", 4, ""), ("0,4", 4, "no rank 4"), ("all", 1, ""), ("1", 1, "1 rank, ")]
)
def test_the_ranks_of_the_console_are_ranks_of_the_job(console, world, missing):
    try:
        checks.console(launching.request(console=console), world)
        said = ""
    except Refusal as refusal:
        assert refusal.status == USAGE
        said = refusal.lines[0]
    assert (missing in said) if missing else said == ""


def test_a_restart_may_have_fewer_ranks():
    assert checks.console(launching.request(console="3", attempt="1"), 2) is None


@pytest.mark.parametrize(("script", "argument"), [("ascend2p.sh", "PROGRAM or CONFIG"), ("run.sh", "DATA_PATH")])
def test_a_command_without_a_word_is_told_what_to_type(script, argument):
    declaration = declared(script).replace(script=project.path("scripts", script))
    with pytest.raises(Refusal) as refusal:
        read(declaration, [], {})
    first, *usage = refusal.value.lines
    assert (refusal.value.status, first.partition(";")[0]) == (USAGE, f"{argument} is missing")
    assert usage[0].startswith(f"Usage: bash {project.ROOT}/scripts/{script} [options] ") and len(usage) == 2
    with pytest.raises(Refusal) as refusal:
        read(declaration, ["--quiet"], {})
    assert len(refusal.value.lines) == 1
    assert help_page.usage(declaration.replace(script="no/such/script.sh")) == []
