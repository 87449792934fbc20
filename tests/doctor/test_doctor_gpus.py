"""GPUs on the doctor's page."""

import pytest

from hccl_tools.common import project


@pytest.fixture
def gpus(machine, monkeypatch):
    """A machine with two GPUs, and a MindSpore that takes them."""
    monkeypatch.delenv("CUDA_HOME", raising=False)
    machine.tool(
        "nvidia-smi",
        'case "$*" in',
        '  *compute_cap*) printf "8.0\\n8.0\\n" ;;',
        '  *) printf "NVIDIA A100, 535.1\\nNVIDIA A100, 535.1\\n" ;;',
        "esac",
    )
    machine.mindspore("__version__ = '2.9.0'", "def set_context(device_target): pass")
    return machine


@pytest.mark.slow
def test_without_nvidia_smi_there_are_none(machine):
    machine.line("GPUs", "absent", "nvidia-smi is not on PATH")
    assert "MindSpore on GPUs" not in machine.lines()[0]


@pytest.mark.slow
def test_gpus_are_named_with_driver_and_compute_capability(gpus):
    gpus.line("GPUs", "ok", "2: NVIDIA A100, driver 535.1, compute capability 8.0")
    gpus.line("MindSpore on GPUs", "ok")


@pytest.mark.slow
def test_launches_run_on_the_gpus_where_there_are_some(gpus, monkeypatch):
    gpus.tool("nvidia-smi", 'echo "GPU 0: NVIDIA H200 (UUID: GPU-a)"')
    assert gpus.line("devices", "absent").remedy == "launches run with --device_target GPU"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpus.line("devices", "absent").remedy == "launches run with --device_target CPU"


@pytest.mark.slow
def test_the_gpus_that_a_variable_leaves(gpus, monkeypatch):
    assert "visible GPUs" not in gpus.lines()[0]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    gpus.line("visible GPUs", "ok", "CUDA_VISIBLE_DEVICES=1,0: DEVICE_ID 0,1 for devices 1,0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    gpus.line("visible GPUs", "warning", "CUDA_VISIBLE_DEVICES=-1 hides all GPUs")


@pytest.mark.slow
def test_an_old_driver_does_not_know_the_compute_capability(gpus):
    gpus.tool("nvidia-smi", '[[ $* != *compute_cap* ]] || exit 2; echo "Tesla K80, 418.87"')
    assert gpus.line("GPUs", "ok").text == "1: Tesla K80, driver 418.87"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        (
            "echo 'NVIDIA-SMI has failed' >&2; exit 9",
            "warning",
            "nvidia-smi does not work: NVIDIA-SMI has failed (exit 9)",
        ),
        ("exit 0", "absent", "nvidia-smi names none"),
    ],
)
def test_an_nvidia_smi_without_gpus_is_told(gpus, script, status, said):
    gpus.tool("nvidia-smi", script)
    gpus.line("GPUs", status, said)


@pytest.mark.slow
def test_what_mindspore_lacks_is_named(gpus):
    said = "Unsupported device target GPU. Load dynamic library: libmindspore_gpu.so.11.6 failed. libcublas.so.11: lost"
    gpus.mindspore(f"SAID = {said!r}", "def set_context(device_target):", "    raise RuntimeError(SAID)")
    found = gpus.line("MindSpore on GPUs", "warning", "cannot load libmindspore_gpu.so.11.6: libcublas.so.11: lost")
    assert found.remedy.startswith(f"install what {project.ROOT}/docs/gpu.md lists")
    gpus.mindspore("raise ImportError('no such library')")
    gpus.line("MindSpore on GPUs", "unknown", "could not be asked: ImportError: no such library (exit 1)")
