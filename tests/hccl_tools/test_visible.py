"""Which devices the ranks see, and by which numbers: hccl_tools/machine/visible.py."""

import pytest

from hccl_tools.common.refusal import Refusal
from hccl_tools.machine import host, visible


@pytest.fixture
def here(world, monkeypatch):
    """here(4, 5): the NPUs of this host; `nodes`: those in /dev, if npu-smi names others."""

    def have(*devices, nodes=None):
        monkeypatch.setattr(host, "nodes", lambda: list(devices if nodes is None else nodes))
        monkeypatch.setattr(host, "devices", lambda: list(devices))

    for name in ("SLURM_JOB_ID", "SLURM_JOB_NPUS", "SLURM_STEP_NPUS", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS"):
        monkeypatch.delenv(name, raising=False)
    have()
    return have


@pytest.mark.parametrize(
    ("devices", "text", "ids"),
    [
        pytest.param(range(8), "4,5", (4, 5), id="a host"),
        pytest.param(range(16), "0,2,4,15", (0, 2, 4, 15), id="sixteen devices"),
        pytest.param([4, 5, 6, 7], "2,3", (6, 7), id="in a container they are places, not physical ids"),
        pytest.param([], "4,5", (4, 5), id="where nothing tells which devices there are"),
        pytest.param([4, 5], None, (4, 5), id="a container without the variable"),
        pytest.param([], None, None, id="nothing limits them"),
    ],
)
def test_the_npus_that_the_ranks_see(here, monkeypatch, devices, text, ids):
    here(*devices)
    if text is not None:
        monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", text)
    seen = visible.npus()
    assert seen.ids == ids and seen.certain
    assert seen.limit == (f"ASCEND_RT_VISIBLE_DEVICES={text}" if text else "")


@pytest.mark.parametrize(
    ("text", "fault", "read"),
    [
        ("4,,5", "a number is missing between its commas", "only 4"),
        ("4,5,", "a number is missing between its commas", "only 4,5"),
        ("a", '"a" is not a number', "nothing"),
        ("4-7", '"4-7" is a range', "nothing"),
        ("-1", '"-1" is not a number', "nothing"),
        ("", "it is empty", "nothing"),
        (" ", "it is empty", "nothing"),
        ("1, 2,3", '" 2" has a blank', "only 1"),
        ("4,4", "4 comes after 4", "nothing"),
        ("5,4", "4 comes after 5", "nothing"),
        ("1,3,8", "8 is too large: CANN numbers the 8 devices here from 0 to 7", "only 1,3"),
        ("4\n5", r'"4\n5" is not a number', "nothing"),
        ("4" * 5000, "is not a number", "nothing"),
    ],
)
def test_a_list_that_cann_reads_in_part_or_not_at_all_is_refused(here, monkeypatch, text, fault, read):
    here(*range(8))
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", text)
    with pytest.raises(Refusal) as error:
        visible.npus()
    (line,) = error.value.lines
    assert fault in line and f"CANN reads {read} of it" in line and line.isprintable() and len(line) < 500
    assert line.endswith("or: unset ASCEND_RT_VISIBLE_DEVICES")


def test_physical_ids_in_a_container_are_told_as_the_places_that_cann_wants(here, monkeypatch):
    here(4, 5)
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "4,5")
    with pytest.raises(Refusal, match="from 0 to 1; CANN reads nothing of it; .* ASCEND_RT_VISIBLE_DEVICES=0,1, or:"):
        visible.npus()


def test_the_index_of_a_device_and_what_hides_it(here, monkeypatch):
    here(*range(8))
    assert visible.Visible().index(5) == 5 and not visible.Visible().hides(5)
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "4,6")
    seen = visible.npus()
    assert (seen.index(6), seen.index(5), seen.hides(5), seen.hides(4)) == (1, None, True, False)
    assert seen.numbering([4, 6]) == "ASCEND_RT_VISIBLE_DEVICES=4,6: DEVICE_ID 0,1 for devices 4,6"
    text = str(seen.refusal([0, 5]))
    assert text.startswith(
        "devices 0,5 cannot be used: ASCEND_RT_VISIBLE_DEVICES=4,6 shows the ranks only devices 4,6;"
    )


def test_a_container_of_some_devices_hides_the_others_without_a_variable(here):
    here(4, 5)
    seen = visible.npus()
    assert seen.index(5) == 1 and seen.index(0) is None and not seen.hides(0)
    assert seen.numbering([4, 5]) == "CANN counts the devices in /dev: DEVICE_ID 0,1 for devices 4,5"


# ---- GPUs -------------------------------------------------------------


@pytest.fixture
def nvidia_smi(here, tmp_path):
    """A nvidia-smi on PATH that names four GPUs."""
    lines = [f"GPU {n}: NVIDIA A100-SXM4-40GB (UUID: GPU-{n}a{n}b-{n})" for n in range(4)]
    lines.insert(1, "  MIG 1g.5gb     Device  0: (UUID: MIG-1234)")
    program = tmp_path / "programs" / "nvidia-smi"
    program.write_text("#!/usr/bin/env bash\nprintf '%s\\n' " + " ".join(f"'{line}'" for line in lines) + "\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "ids", "certain"),
    [
        ("2,3", (2, 3), True),
        ("3,1", (3, 1), True),
        (" 0 , 2", (0, 2), True),
        ("0,2,-1,1", (0, 2), True),
        ("GPU-2a2b-2,GPU-0a", (2, 0), True),
        ("1,GPU-3a3b-3", (1, 3), True),
        ("MIG-1234", (0,), False),
        ("MIG-GPU-0a0b-0/1/0,MIG-5678", (0,), False),
    ],
)
def test_the_gpus_that_the_ranks_see(nvidia_smi, monkeypatch, text, ids, certain):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
    seen = visible.gpus()
    assert (seen.ids, seen.certain, seen.limit) == (ids, certain, f"CUDA_VISIBLE_DEVICES={text}")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "hides all GPUs"),
        ("-1", "hides all GPUs"),
        ("NoDevFiles", "hides all GPUs"),
        ("0,0", "names GPU 0 twice"),
        ("all", '"all" is neither a number nor the UUID of a GPU; see: nvidia-smi -L'),
        ("0,,1", '"" is neither a number'),
        ("GPU-9", "no GPU here has this UUID"),
        ("GPU-", "the UUIDs of several GPUs here begin like this"),
    ],
)
def test_gpus_that_cuda_would_not_show(nvidia_smi, monkeypatch, text, fault):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
    with pytest.raises(Refusal) as error:
        visible.gpus()
    assert fault in str(error.value) and f"CUDA_VISIBLE_DEVICES={text}" in str(error.value)


def test_without_nvidia_smi_a_uuid_is_a_place_that_nobody_can_lock(here, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1,GPU-2")
    assert visible.gpus() == visible.Visible(ids=(0, 1), limit="CUDA_VISIBLE_DEVICES=GPU-1,GPU-2", certain=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert visible.of("GPU") == visible.of("CPU") == visible.Visible()


# ---- Slurm, and what limits nothing -------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "ids"),
    [
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "2,3"}, (2, 3)),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "2,3", "SLURM_STEP_GPUS": "3,2"}, (3, 2)),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "2,3,4"}, (0, 1)),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "gpu:2"}, (0, 1)),
        ({"SLURM_JOB_ID": "7"}, (0, 1)),
        ({"SLURM_JOB_GPUS": "2,3"}, (0, 1)),
    ],
)
def test_slurm_numbers_the_devices_of_a_job_from_0_and_tells_those_of_the_host(here, monkeypatch, environment, ids):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setenv(name.replace("GPUS", "NPUS"), value)
    here(*range(8))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "0,1")
    assert visible.gpus().ids == visible.npus().ids == ids


def test_slurms_list_changes_nothing_where_the_variable_has_the_hosts_numbers(here, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NPUS", "0,1")
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "4,5")
    here(*range(8))
    assert visible.npus().ids == (4, 5)


@pytest.mark.parametrize("name", visible.WITHOUT_EFFECT)
def test_variables_that_limit_no_process(here, monkeypatch, name):
    here(4, 5)
    monkeypatch.setenv(name, "4,5")  # what the container runtime was told, and did
    assert visible.without_effect(visible.npus()) == []
    monkeypatch.setenv(name, "5")
    (line,) = visible.without_effect(visible.npus())
    assert line.startswith(f"note: {name}=5 does not limit the ranks")
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "1")
    assert visible.without_effect(visible.npus()) == []
