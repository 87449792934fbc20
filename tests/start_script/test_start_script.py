"""What --zoo makes of the starts of a script, apart from a launch; start_scripts.bats launches them."""

import os
import shutil
import subprocess

import pytest
from command.command_lines import command
from suite.cases import for_each
from supervise.small_launcher import gone

from hccl_tools.common.refusal import Refusal
from tools.launch.programs import command_words, launchers
from tools.start_script import job, launching, noting, rank_file
from tools.start_script.noting import Start

CALLER = {b"PATH": os.environb[b"PATH"], b"HOME": b"/root"}


def start(*words, tool="python", **environ):
    """A start in /net with these variables, whose names are given in small letters."""
    named = {name.upper(): str(value) for name, value in environ.items()}
    return Start(tool=tool, program="/bin/python", words=list(words), folder="/net", environ=named, cores=[0])


def loop(ranks, **environ):
    """The starts of a loop."""
    return [start("train.py", rank_id=rank, device_id=rank, rank_size=ranks, **environ) for rank in range(ranks)]


@for_each(
    "command, found",
    [
        ("train.py --m x", ("file", "train.py")),
        ("-u ../train.py", ("file", "../train.py")),
        ("-W ignore -X dev train.py", ("file", "train.py")),
        ("-m package.train -m x", ("module", "package.train")),
        ("-u -m train", ("module", "train")),
        ("-mpackage.train x.yaml", ("module", "package.train")),
        ("-um package.train x.yaml", ("module", "package.train")),
        ("-Werror -uX dev train.py", ("file", "train.py")),
        ("-cpass train.py", ("", "")),
        ("-- train.py", ("file", "train.py")),
        ("-m", ("module", "")),
        ("-c pass train.py", ("", "")),
        ("-V", ("", "")),
        ("--version", ("", "")),
        ("- train.py", ("", "")),
        ("", ("", "")),
    ],
)
def test_what_python_would_run(command, found):
    assert command_words.of_python(command.split()) == found


@pytest.mark.slow
@for_each(
    "line, noted",
    [
        ("python train.py &", True),
        ("nohup python train.py > log 2>&1 &", True),
        ("(cd /; python -u train.py) &", True),
        ("(cd /; python train.py; true) &", True),
        ("f() { python train.py; true; }; f &", True),
        ("{ python train.py; } &", True),
        ("for i in 1; do python train.py; done &", True),
        ("python train.py | tee log &", True),
        ("RANK_ID=0 python train.py", True),
        ("python ../train.py >log 2>&1", True),
        ("python run_pretrain.py", True),
        ("python eval_onnx.py", True),
        ("echo $(python prepare.py)", False),
        ("(python create_train_data.py; true)", False),
        ("CUDA_VISIBLE_DEVICES=1 python train.py", True),
        ("env DEVICE_ID=3 python eval.py", True),
        ("python -m train &", True),
        ("mpirun -n 8 python train.py", True),
        ("msrun --worker_num=8 train.py", True),
        ("python -c 'print(1)' &", False),
        ("python -m pip list", False),
        ("mpirun --version", False),
        ("mpirun.openmpi -n 8 python train.py", True),
        (f"python {noting.project.ROOT}/tools/launch/main.py", False),
        ("python prepare.py", False),
        ("DEVICE_ID=0 python -m json.tool /dev/null", False),
        ("DEVICE_ID=0 python ../hccl_tools.py", False),
    ],
)
def test_trainings_are_noted_and_steps_on_the_way_are_done(line, noted, tmp_path):
    (tmp_path / "run.sh").write_text(f"cd {tmp_path}\n{line}\n")
    try:
        found = noting.of_script([str(tmp_path / "run.sh")], CALLER, "")
    except Refusal as refusal:  # a step that failed
        assert "ended with" in str(refusal)
        found = []
    assert bool(found) == noted


def test_the_order_of_the_starts_and_what_each_has(tmp_path):
    lines = 'for i in 0 1 2; do mkdir d$i; cd d$i; NUMBER=$i python train.py "a b" $i >log & cd ..; done\n'
    (tmp_path / "run.sh").write_text(f"cd {tmp_path}\nexport DEVICE_NUM=3\n{lines}")
    found = noting.of_script([str(tmp_path / "run.sh")], CALLER, "see there")
    assert [each.words for each in found] == [["train.py", "a b", str(number)] for number in range(3)]
    assert [each.folder for each in found] == [str(tmp_path / f"d{number}") for number in range(3)]
    assert [each.environ["NUMBER"] for each in found] == ["0", "1", "2"]
    assert found[0].environ["PATH"] == os.environ["PATH"] and found[0].program == shutil.which("python")
    assert (tmp_path / "d1" / "log").read_text() == "see there\n"


def test_a_script_that_follows_its_log_ends(tmp_path):
    (tmp_path / "run.sh").write_text(
        f"cd {tmp_path}\npython train.py >log &\nDEVICE_ID=0 tail -n 1 run.sh >copy\ntail -f log\n"
    )
    assert len(noting.of_script([str(tmp_path / "run.sh")], CALLER, "")) == 1
    assert (tmp_path / "copy").read_text() == "tail -f log\n"


@pytest.mark.parametrize("folder", ["no/such/folder", "plain"])
def test_a_folder_for_temporary_files_that_does_not_do_is_refused(folder, tmp_path, monkeypatch):
    (tmp_path / "plain").mkdir()
    monkeypatch.setattr(noting.tempfile, "tempdir", str(tmp_path / folder))
    monkeypatch.setattr(noting.os, "access", lambda *_: False)  # as where it is mounted noexec
    with pytest.raises(Refusal, match=f"{folder} cannot be used: .*; name another one in TMPDIR"):
        noting.of_script(["run.sh"], CALLER, "")
    assert not list((tmp_path / "plain").iterdir())


def test_a_process_that_the_script_leaves_is_named_and_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(noting, "PATIENCE", 0.2)
    (tmp_path / "run.sh").write_text(f"sleep 517 & echo $! >{tmp_path}/pid\nRANK_ID=0 python train.py &\n")
    with pytest.raises(Refusal, match=r"run.sh has left sleep 517 running"):
        noting.of_script([str(tmp_path / "run.sh")], CALLER, "")
    gone(int((tmp_path / "pid").read_text()))


def test_the_job_of_a_loop():
    found = job.of("run.sh", list(reversed(loop(4, rank_table_file="t.json"))), {})
    assert [each.environ["RANK_ID"] for each in found.starts] == ["0", "1", "2", "3"]
    assert (found.first, found.world, found.devices, found.table, found.alone) == (
        0,
        4,
        [0, 1, 2, 3],
        "/net/t.json",
        False,
    )


def test_ranks_without_numbers_are_in_the_order_of_their_starts():
    found = job.of("run.sh", [start("a.py", device_id=5), start("a.py", device_id=4)], {})
    assert (found.first, found.world, found.devices) == (0, 2, [5, 4])
    found = job.of("run.sh", [start("a.py", rank_size=2), start("a.py", rank_size=2)], {})
    assert (found.first, found.world, found.devices) == (0, 2, [])


def test_a_rank_table_as_typed_is_found_though_the_script_has_changed_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.json").touch()
    assert job.table_of(start("a.py", rank_table_file="t.json")) == str(tmp_path / "t.json")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "t.json").touch()
    inside = start("a.py", rank_table_file="t.json").replace(folder=str(tmp_path / "d"))
    assert job.table_of(inside) == str(tmp_path / "d" / "t.json")
    assert job.table_of(start("a.py", rank_table_file="u.json")) == "/net/u.json"


def test_one_rank_joins_a_job_only_if_the_script_names_a_rank_table():
    one = start("train.py", rank_id=0, rank_size=1, rank_table_file="/t.json")
    assert job.of("run.sh", [start("train.py")], {}).alone
    assert job.of("run.sh", [one], {"RANK_TABLE_FILE": "/t.json"}).alone
    assert not job.of("run.sh", [one], {}).alone


def test_a_server_of_several():
    starts = [start("a.py", rank_id=8 + n, device_id=n, rank_size=16, rank_table_file="/t.json") for n in range(8)]
    found = job.of("run.sh", starts, {})
    assert (found.first, found.world, found.devices) == (8, 16, list(range(8)))


@pytest.mark.parametrize(
    ("starts", "text"),
    [
        ([], "run.sh started no training"),
        ([start("a.py", ms_role="MS_SCHED")], "run.sh started no training"),
        ([start("a.py", ms_role="MS_PSERVER")], "parameter server"),
        ([start("a.py", rank_id=0), start("b.py", rank_id=0)], "not another number in each"),
        ([start("a.py", rank_id=0), start("b.py")], "not another number in each"),
        ([start("a.py"), start("b.py")], "not another number in each"),
        (
            [start("a.py", device_id=0, rank_size=1), start("b.py", device_id=0, rank_size=1)],
            "not another number in each",
        ),
        ([start("a.py", tool="mpirun"), start("b.py")], "more than one job"),
        ([start("a.py", rank_id=0), start("b.py", rank_id=2)], "leaves out a rank: RANK_ID is 0, 2"),
        ([start("a.py", rank_size=8)], "starts 1 of 8 ranks and names no rank table"),
        ([start("a.py", rank_id=1, rank_size=1)], "starts ranks 1 to 1, but RANK_SIZE is 1"),
        ([start("a.py", rank_id="x")], "sets RANK_ID=x, which is not a number"),
        ([start("a.py", device_id="0,1")], "sets DEVICE_ID=0.*1, which is not a number"),
    ],
)
def test_what_is_no_job(starts, text):
    with pytest.raises(Refusal, match=text):
        job.of("run.sh", starts, {})


def test_the_file_of_the_ranks_runs_what_the_script_starts(tmp_path):
    rank = {"rank_size": 2, "odd": "it's $HOME\nhere", "path": os.environ["PATH"]}
    program = '#!/bin/sh\nprintf "%s|" "$PWD" "$ODD" "${GONE-none}" "$OWN" "$@"\n'
    (tmp_path / "show").write_text(program)
    (tmp_path / "show").chmod(0o755)
    starts = [
        start("a 'word'", str(number), rank_id=number, own=f"of {number}", **rank).replace(
            program=str(tmp_path / "show"), folder=str(tmp_path), cores=sorted(os.sched_getaffinity(0))
        )
        for number in range(2)
    ]
    caller = {"GONE": "away", "PATH": os.environ["PATH"], "RANK_ID": "7"}
    text = rank_file.text("run.sh", job.of("run.sh", starts, caller), caller, bound=False)
    (tmp_path / "ranks.sh").write_bytes(text)
    for number in "0", "1":
        environ = {**caller, "RANK_ID": number}
        said = subprocess.run(
            ["sh", tmp_path / "ranks.sh", "more"], env=environ, capture_output=True, text=True, check=True
        )
        assert said.stdout == f"{tmp_path}|it's $HOME\nhere|none|of {number}|-u|a 'word'|{number}|more|"


@pytest.mark.parametrize(("here", "cores", "bound", "word"), [((0, 1), [1], False, True), ((0, 1), [1], True, False)])
def test_the_cores_of_taskset_unless_the_launch_binds(here, cores, bound, word, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(here))
    ranks = job.of("run.sh", [start("a.py").replace(cores=cores)], {})
    assert (b"exec taskset -c 1 " in rank_file.text("run.sh", ranks, {}, bound=bound)) == word


def test_every_launcher_whose_script_may_be_advised_has_a_stand_in(tmp_path):
    noting.make_stand_ins(str(tmp_path), CALLER, "")
    assert {*launchers.BY_ZOO} <= {path.name for path in (tmp_path / "bin").iterdir()}


@pytest.mark.parametrize(
    ("typed", "script"),
    [
        ("./run.sh a b", ([], ["./run.sh", "a", "b"])),
        ("bash run a", ([], ["run", "a"])),
        ("/bin/dash run a", ([], ["run", "a"])),
        ("bash -e -o pipefail run.sh -e", (["-e", "-o", "pipefail"], ["run.sh", "-e"])),
    ],
)
def test_the_script_and_the_options_of_its_shell(typed, script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("run", "run.sh"):
        (tmp_path / name).touch()
    assert launching.script_of(typed.split()) == script


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("", "--zoo needs the start script, such as: --zoo run_distribute_train.sh"),
        ("bash", "--zoo bash: is not a shell script"),
        ("bash -c true", "--zoo bash: is not a shell script"),
        ("bash none.sh", "none.sh: no such file"),
    ],
)
def test_a_command_without_a_script_is_refused(typed, text):
    with pytest.raises(Refusal, match=text):
        launching.script_of(typed.split())


@pytest.mark.parametrize("name", ["rank_folder", "rank_files", "per_rank_words"])
def test_options_of_ranks_that_the_script_starts_are_refused(name):
    words = "--rank_files=a" if name == "rank_files" else f"--{name}"
    with pytest.raises(Refusal, match=f"--zoo with --{name}: the script itself decides where its ranks run"):
        launching.check_options(command("launch.sh", f"{words} --zoo run.sh"))


def test_dashes_before_the_script_are_not_among_the_words_for_our_script(tmp_path, monkeypatch):
    became = []
    monkeypatch.setattr(os, "execve", lambda _, words, __: became.extend(words))
    mpirun = start("-n", "2", "train.py", tool="mpirun").replace(folder=os.getcwd())
    launching.become(mpirun, ["--zoo", "--console", "all", "--", "--log_dir=logs"], lambda _: None)
    assert became[2:] == ["--console", "all", "--log_dir=logs", "-n", "2", "train.py"]


def test_the_options_of_the_shell_reach_it(tmp_path):
    (tmp_path / "run").write_text(f"cd {tmp_path}\nfalse\npython train.py &\n")
    assert len(noting.of_script([str(tmp_path / "run")], CALLER, "")) == 1
    with pytest.raises(Refusal, match="ended with 1"):
        noting.of_script([str(tmp_path / "run")], CALLER, "", ["-e"])
