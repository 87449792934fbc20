"""Programs that start ranks themselves: which commands are such, what to type instead, and which scripts start them."""

import shlex

import pytest
from launching import request
from suite.cases import for_each

from hccl_tools.common import project
from hccl_tools.common.refusal import USAGE, Refusal
from tools.launch.programs import launchers, own_loop

SCRIPTS = project.path("scripts")


def program(*words, **given):
    return request(*words, program="yes", **given)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


LINES = {
    "msrun --worker_num=2 show.py": "run_msrun.sh --worker_num=2 show.py",
    "/opt/bin/mpirun --allow-run-as-root -n 2 a.out": "run_mpirun.sh --allow-run-as-root -n 2 a.out",
    "sh /opt/bin/mpirun -n 2 a.out": "run_mpirun.sh -n 2 a.out",
    "mpiexec -n 2 ./start.sh": "run_mpirun.sh -n 2 ./start.sh",
    "orterun -np 2 a.out": "run_mpirun.sh -np 2 a.out",
    "prun -n 2 python show.py": "run_mpirun.sh -n 2 python show.py",
    "torchrun --nproc_per_node=2 show.py --x": "launch.sh --nproc_per_node=2 show.py --x",
    "-m torch.distributed.run --nproc_per_node 2 show.py": "launch.sh --nproc_per_node 2 show.py",
    "python3.11 -u -X dev -m torch.distributed.launch --nproc_per_node 2 x.py": "launch.sh --nproc_per_node 2 x.py",
    "python -m mindspore.parallel.cluster.run --worker_num 2 show.py": "run_msrun.sh --worker_num 2 show.py",
    "python -mmindspore.parallel.cluster.run show.py": "run_msrun.sh show.py",
    "python /opt/bin/msrun --worker_num 2 show.py": "run_msrun.sh --worker_num 2 show.py",
    "accelerate launch --num_processes 4 show.py --x": "launch.sh -n 4 show.py --x",
    "deepspeed --num_gpus=2 show.py": "launch.sh -n 2 show.py",
    "horovodrun -np 3 python show.py": "launch.sh -n 3 python show.py",
    "colossalai run --nproc_per_node 4 show.py": "launch.sh -n 4 show.py",
    "python -um mindspore.parallel.cluster.run show.py": "run_msrun.sh show.py",
}


@for_each("typed", LINES)
def test_a_launcher_has_a_line_to_type_instead(typed):
    found = launchers.find(shlex.split(typed))
    line = shlex.split(launchers.instead(found, program("x"), 8))
    script, *words = shlex.split(LINES[typed])
    assert line == ["bash", f"{SCRIPTS}/{script}", *words]


def test_what_comes_before_it_and_the_hardware_that_was_typed_stay():
    words = ["env", "-u", "X", "GLOG_v=3", "nohup", "timeout", "-k", "5", "1h", "msrun", "-a", "a b.py"]
    line = launchers.instead(launchers.find(words), program("x", device_target="CPU"), 8)
    assert line == (
        f"env -u X GLOG_v=3 nohup timeout -k 5 1h bash {SCRIPTS}/run_msrun.sh --device_target CPU -a a\\ b.py"
    )


@pytest.mark.parametrize(
    "before", ["setsid -f", "time -a -o f", "stdbuf -o L", "exec -a name", "nohup", "command -p", "env -u A B=1"]
)
def test_a_launcher_is_found_behind_programs_that_start_it(before):
    words = [*before.split(), "mpirun", "x.py"]
    assert launchers.find(words).before == tuple(before.split())


def test_srun_becomes_an_allocation_or_uses_the_one_that_is_there(monkeypatch):
    found = launchers.find(["srun", "-N", "2", "-n", "4", "python", "show.py"])
    script = f"bash {SCRIPTS}/run_slurm.sh python show.py"
    assert launchers.instead(found, program("x"), 8) == f"salloc -N 2 -n 4 {script}"
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert launchers.instead(found, program("x"), 8) == script


def test_our_own_scripts_are_launchers_too():
    for words in (["bash", f"{SCRIPTS}/launch.sh", "-n", "2", "x.py"], [f"{SCRIPTS}/ascend8p.sh", "x.py"]):
        found = launchers.find(words)
        assert launchers.instead(found, program("x"), 2) == " ".join((["bash"] if words[0] != "bash" else []) + words)
    words = ["/bin/bash", f"{SCRIPTS}/ascend4p.sh", "a.yaml"]
    assert launchers.instead(launchers.find(words), program("x"), 2) == " ".join(words)
    assert launchers.find([f"{SCRIPTS}/doctor.sh"]) is None


@pytest.mark.parametrize(
    "text",
    ["cd x && msrun --worker_num=2 show.py", "set -e; A=1 mpirun -n 2 x", "if true; then\nexec torchrun x.py\nfi"],
)
def test_a_launcher_in_the_text_of_a_shell_has_no_line(text):
    found = launchers.find(["bash", "-lc", text])
    assert launchers.instead(found, program("x"), 2) == ""


@for_each(
    "typed",
    [
        "python train.py --launcher msrun",
        "train.py mpirun",
        "accelerate config",
        "env",
        "env A=1",
        "nohup",
        "bash -c 'echo msrun; python x.py'",
        "bash -c 'a quote \" that is not closed'",
        "bash train.sh msrun",
        "python -m",
        "python -m torch.utils.collect_env",
        "timeout 5",
        "./my_msrun",
        "mpirun --version",
        "nohup python -m torch.distributed.run -h",
        "accelerate launch --help",
        "command -v mpirun",
        "bash -c 'command -v mpirun >/dev/null && python t.py'",
        "bash -c 'mpirun --version; python t.py'",
        "bash -o pipefail train.sh",
        "python -c pass msrun",
    ],
)
def test_other_programs_are_none(typed):
    assert launchers.find(shlex.split(typed)) is None
    assert launchers.find(tuple(shlex.split(typed))) is None


def test_several_ranks_refuse_it_and_one_rank_gets_a_note():
    wanted = program("msrun", "--worker_num=2", "show.py")
    with pytest.raises(Refusal) as refusal:
        launchers.check(wanted, 2)
    assert refusal.value.status == USAGE
    assert str(refusal.value).endswith(f"; type instead: bash {SCRIPTS}/run_msrun.sh --worker_num=2 show.py")
    launchers.check(wanted, 1)
    assert launchers.remarks(wanted) == [
        "note: msrun starts ranks itself: this launch sees one rank, but none of those"
    ]


def test_a_text_of_a_shell_may_be_run_nevertheless():
    wanted = program("bash", "-c", "cd x && msrun x.py")
    with pytest.raises(Refusal, match="and not before it; to run it in every rank nevertheless: --no_check$"):
        launchers.check(wanted, 2)


def test_a_line_that_is_too_long_to_paste_is_not_printed():
    with pytest.raises(Refusal) as refusal:
        launchers.check(program("msrun", *["--word"] * 1000), 2)
    assert str(refusal.value).endswith("run_msrun.sh instead of it, with its arguments, and not before it")


# ---- the text of a script --------------------------------------------------------------------------------------------

STARTS = {
    "msrun --worker_num=2 x.py": ":2 starts msrun,",
    "  A=1 B=$C /usr/bin/mpirun -n 2 x.py &": ":2 starts mpirun,",
    "mpirun --version; mpirun.openmpi -n 2 x.py": ":2 starts mpirun.openmpi,",
    "nohup mpirun -n 8 \\": ":2 starts mpirun,",
}


@pytest.mark.parametrize("text", STARTS)
def test_a_script_that_starts_ranks_is_named_with_its_line(text, tmp_path):
    (tmp_path / "start.sh").write_text(f"#!/bin/bash\n{text}\n")
    for words in (["./start.sh", "x"], ["bash", "start.sh"], ["bash", "-e", "start.sh"]):
        (found,) = own_loop.launcher_remarks(words, 8)
        assert STARTS[text] in found and found.endswith(f"launch.sh --zoo start.sh{' x' * ('x' in words)}")


OTHERS = {
    "if [ $1 ]; then torchrun x.py; fi": ("torchrun", "launch.sh"),
    "python3 -u -m torch.distributed.launch x.py": ("python -m torch.distributed.launch", "launch.sh"),
    "python -m mindspore.parallel.cluster.run x.py": ("python -m mindspore.parallel.cluster.run", "run_msrun.sh"),
    "srun -n 2 x.py": ("srun", "run_slurm.sh"),
    "accelerate launch x.py": ("accelerate launch", "launch.sh"),
}


@pytest.mark.parametrize("text", OTHERS)
def test_a_script_whose_launcher_has_no_stand_in_is_to_be_changed(text, tmp_path):
    (tmp_path / "start.sh").write_text(f"#!/bin/bash\n{text}\n")
    (found,) = own_loop.launcher_remarks(["./start.sh"], 8)
    name, script = OTHERS[text]
    assert f":2 starts {name}, which" in found
    assert found.endswith(f"; in the script, write bash {SCRIPTS}/{script} in its place")


@pytest.mark.parametrize(
    "text",
    [
        "accelerate config default",
        "mpirun --version",
        "if mpirun -V; then",
        "# msrun --worker_num=2",
        "echo msrun",
        "export RANK_ID=${OMPI_COMM_WORLD_RANK}",
        "python x.py --launcher=mpirun",
        "which mpirun",
        "mpirun_args=1",
    ],
)
def test_a_script_that_does_not_is_not(text, tmp_path):
    (tmp_path / "start.sh").write_text(f"#!/bin/bash\n{text}\n")
    assert own_loop.launcher_remarks(["./start.sh"], 8) == []


def test_what_is_no_script_or_cannot_be_read_has_no_remark(tmp_path):
    assert own_loop.launcher_remarks(["python", "x.py"], 8) == []
    assert own_loop.launcher_remarks(["bash", "-c", "msrun x.py"], 8) == []
    assert own_loop.launcher_remarks(["bash"], 8) == []
    assert own_loop.launcher_remarks(["./none.sh"], 8) == []
