"""A process's place in its job, as our launcher, mpirun or srun tells it; and the ranks that nobody brings together."""

import contextlib
import gc
import os
import subprocess
import sys
import types

import pytest
from suite.needs import needs

from tools.config.unusable import Unusable
from tools.trainer import job, place

MPIRUN = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
SRUN = {"SLURM_STEP_NUM_TASKS": "6", "SLURM_NTASKS": "6", "SLURM_PROCID": "5", "SLURM_LOCALID": "2"}
BATCH = {"SLURM_NTASKS": "6", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}  # a batch script outside of srun
OURS = {"RANK_SIZE": "2", "RANK_ID": "1", "DEVICE_ID": "7"}


@pytest.fixture
def environment(monkeypatch):
    """environment({...}, {...}): what this process has, and nothing else of a launcher's."""

    def become(*parts):
        for name in list(os.environ):
            if name.startswith(("OMPI_", "SLURM_", "RANK_", "DEVICE_", "MS_")):
                monkeypatch.delenv(name)
        for name, value in {name: value for part in parts for name, value in part.items()}.items():
            monkeypatch.setenv(name, value)

    return become


def config(target="Ascend", distribute=True):
    return {"system": {"distribute": distribute, "device_target": target, "mode": 0}}


@pytest.mark.parametrize(
    ("parts", "device", "ranks"),
    [
        ([], 0, 1),
        ([OURS], 7, 2),
        ([MPIRUN], 1, 4),
        ([SRUN], 2, 6),
        ([BATCH], 0, 1),
        ([SRUN, MPIRUN], 1, 4),  # mpirun in an allocation
        ([MPIRUN, OURS], 7, 2),
        ([SRUN, OURS], 7, 2),
        ([SRUN, {"RANK_ID": "5"}], 2, 6),  # a rank table under srun
    ],
)
def test_our_variables_come_first_then_mpiruns_then_sruns(environment, parts, device, ranks):
    environment(*parts)
    assert (place.device(), place.ranks_of(config())) == (device, ranks)
    assert place.ranks_of(config(distribute=False)) == 1


@pytest.mark.parametrize(
    ("target", "parts", "call"),
    [
        ("CPU", [MPIRUN, OURS], ("CPU",)),
        ("GPU", [MPIRUN], ("GPU", 1)),
        ("Ascend", [MPIRUN, OURS], ("Ascend", 7)),
    ],
)
def test_a_rank_sets_the_device_of_its_place(environment, monkeypatch, target, parts, call):
    calls = []
    stub = types.SimpleNamespace(set_device=lambda *device: calls.append(device), set_context=lambda mode: None)
    monkeypatch.setitem(sys.modules, "mindspore", stub)
    environment(*parts, {"ONEDNN_MAX_CPU_ISA": "AVX2"})
    device = job.before_mindspore(config(target))
    environment(MPIRUN, {"DEVICE_ID": MPIRUN["OMPI_COMM_WORLD_LOCAL_RANK"]})  # as MindSpore does on import
    job.set_device(config(target), device)
    assert calls == [call]


@pytest.mark.slow
@pytest.mark.parametrize("then", ["", "raise ImportError"])
def test_pythons_collector_does_not_look_at_what_mindspore_makes(monkeypatch, tmp_path, then):
    (tmp_path / "mindspore.py").write_text(
        f"import gc, sys\nsys.collected = gc.isenabled()\nsys.stays = [[] for _ in range(1000)]\n{then}"
    )
    monkeypatch.setattr(sys, "collected", None, raising=False)
    monkeypatch.setattr(sys, "stays", [], raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "mindspore", None)
    del sys.modules["mindspore"]  # at the end it is again what it was
    before = gc.get_freeze_count()
    with pytest.raises(ImportError) if then else contextlib.nullcontext():
        job.import_mindspore()
    assert not sys.collected and gc.isenabled()
    assert gc.get_freeze_count() >= before + len(sys.stays)


@pytest.mark.parametrize("text", ["x", "", "0", "-1", "²", "9" * 5000])
@pytest.mark.parametrize("name", ["RANK_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_a_number_of_ranks_that_is_none_is_refused(environment, name, text):
    environment({name: text})
    with pytest.raises(Unusable, match=f"{name}=.* is not a number from 1 on; the launcher sets it, so unset"):
        place.ranks_of(config())


@pytest.mark.parametrize(
    ("target", "parts", "said"),
    [
        ("CPU", [MPIRUN], "that mpirun alone starts cannot form a cluster on CPU; use scripts/run_mpirun.sh"),
        ("CPU", [SRUN], "that srun alone starts cannot form a cluster on CPU; use scripts/run_slurm.sh"),
        ("CPU", [SRUN, MPIRUN], "use scripts/run_mpirun.sh"),
        ("CPU", [BATCH], "no launcher has started this process"),
        ("CPU", [OURS], "no launcher has started this process"),
        ("Ascend", [SRUN], "that srun alone starts cannot form a cluster on Ascend; use scripts/run_slurm.sh"),
        ("GPU", [], "use a launch script, such as scripts/ascend2p.sh, or train alone with -o system.distribute=False"),
    ],
)
def test_ranks_that_cannot_meet_are_refused(environment, target, parts, said):
    environment(*parts)
    with pytest.raises(Unusable) as refusal:
        place.check(config(target))
    assert said in str(refusal.value)
    place.check(config(target, distribute=False))


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("CPU", [MPIRUN, {"MS_ROLE": "MS_WORKER"}]),
        ("Ascend", [MPIRUN]),
        ("GPU", [MPIRUN]),
        ("Ascend", [OURS]),
        ("Ascend", [SRUN, {"RANK_ID": "5"}]),
        ("Ascend", [{"MS_SIMULATION_LEVEL": "1"}]),
        ("GPU", [SRUN, {"MS_ROLE": "MS_WORKER"}]),
    ],
)
def test_ranks_that_can_meet_go_on(environment, target, parts):
    environment(*parts)
    place.check(config(target))


@pytest.mark.thorough
@needs("mpirun")
def test_the_ranks_of_a_real_mpirun_have_a_device_each(environment, root):
    environment({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    # one write, because two ranks write at the same time
    words = "f\"{place.device()} {place.ranks_of({'system': {'distribute': True}})}\\n\".encode()"
    code = f"import os; from tools.trainer import place; os.write(1, {words})"
    command = ["mpirun", "-n", "2", "-H", "localhost:2", sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=100)
    assert sorted(ended.stdout.splitlines()) == ["0 2", "1 2"], ended.stderr
