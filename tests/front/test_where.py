"""Where mslaunch starts the ranks if nobody says so."""

import json

import good_tables
import pytest

from hccl_tools.common.refusal import Refusal
from tools.command.command import read
from tools.command.declaration import Declaration
from tools.front import where
from tools.launch.request import Request


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    (tmp_path / "srun").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def found(typed, **environ):
    return where.find(typed.split(), environ)


def test_without_anything_it_is_this_machine():
    assert found("-n 8 train.py --hostfile x -H y") == where.Place(engine="local")


@pytest.mark.parametrize(
    "typed", ["--hostfile hosts train.py", "-n 4 -H a:2,b:2 train.py", "--host a train.py", "--hosts a:2,b train.py"]
)
def test_hosts_are_open_mpis(typed):
    place = found(typed, SLURM_JOB_ID="7")
    assert (place.engine, place.why) == ("mpirun", "the options name hosts: Open MPI starts the ranks")


def test_options_of_the_environment_count_too():
    assert found("train.py", MSLAUNCH_OPTIONS="--hostfile hosts").engine == "mpirun"
    assert found("--no_defaults train.py", MSLAUNCH_OPTIONS="--hostfile hosts").engine == "local"
    assert found("--engine local train.py", MSLAUNCH_OPTIONS="--engine msrun").engine == "local"
    assert found("train.py", MSLAUNCH_OPTIONS="--engine msrun").engine == "msrun"
    assert found("train.py", MSLAUNCH_OPTIONS="--bogus").engine == "local"  # the launch itself refuses it


def test_an_allocation_is_sruns():
    place = found("train.py", SLURM_JOB_ID="1234", SLURM_JOB_NUM_NODES="2")
    assert place.engine == "srun"
    assert (
        place.why == "in Slurm's allocation 1234: srun starts the ranks on 2 nodes; --engine local: this machine alone"
    )


def test_an_allocation_without_srun_is_a_machine(folder):
    (folder / "srun").unlink()
    assert found("train.py", SLURM_JOB_ID="1234").engine == "local"
    assert found("train.py", SLURM_JOB_ID="x y").engine == "local"


def test_a_pod_of_a_job_is_the_pods_and_a_notebook_is_a_machine():
    assert found("train.py", KUBERNETES_SERVICE_HOST="10.0.0.1", JOB_COMPLETION_INDEX="0").engine == "pod"
    assert found("train.py", KUBERNETES_SERVICE_HOST="10.0.0.1").engine == "local"
    assert found("train.py", JOB_COMPLETION_INDEX="0").engine == "local"


def test_a_table_of_several_servers_is_typed_on_each(folder, table):
    for name, sizes in (("two.json", (2, 2)), ("one.json", (4,))):
        (folder / name).write_text(json.dumps(table(*sizes)))
    place = found("--rank_table two.json train.py")
    assert (place.engine, place.words) == ("server", (f"rank_table_file={folder}/two.json",))
    assert "has 2 servers" in place.why
    assert found("train.py", RANK_TABLE_FILE="two.json").engine == "server"
    assert found("--rank_table one.json train.py").engine == "local"
    assert found("--rank_table absent.json train.py").engine == "local"


def test_a_table_of_version_2_0_that_has_a_device_twice_or_hosts_is_typed_on_each(folder):
    (folder / "two.json").write_text(json.dumps(good_tables.hosts_of_950(0, 1)))
    (folder / "one.json").write_text(json.dumps(good_tables.hosts_of_950(0)))
    (folder / "bad.json").write_text('{"rank_list": [{}, 3, {"device_id": []}]}')
    place = found("--rank_table two.json train.py")
    assert (place.engine, place.words) == ("server", (f"rank_table_file={folder}/two.json",))
    assert "has the ranks of several hosts" in place.why
    assert found("--rank_table one.json train.py").engine == "local"
    assert found("--rank_table one.json --table_hosts a:2,b:2 train.py").engine == "server"
    assert found("--rank_table bad.json train.py").engine == "local"


@pytest.mark.parametrize("engine", ["local", "mpirun", "srun", "msrun", "pod"])
def test_the_user_may_choose(engine):
    assert found(f"--engine {engine} --hostfile hosts train.py", SLURM_JOB_ID="1") == where.Place(engine=engine)


def test_another_engine_is_refused_with_the_choices():
    with pytest.raises(Refusal) as refusal:
        found("--engine slurm train.py")
    assert refusal.value.lines == ("--engine slurm: write one of local, mpirun, srun, msrun, pod",)


@pytest.mark.parametrize("engine", sorted(where.DECLARED))
def test_every_declaration_reads_a_launch(engine):
    words = ["script=mslaunch", "name=mslaunch", "note=why", *where.DECLARED[engine]]
    command = read(
        Declaration.from_words(words), ["--engine", "local", "--device_target", "CPU", "train.py", "-n", "4"]
    )
    asked = Request.from_words(command.words)
    assert (asked.trainer_arguments, command.notes) == (("train.py", "-n", "4"), ("why",))
    assert asked.typed.endswith("--engine local --device_target CPU train.py -n 4")
