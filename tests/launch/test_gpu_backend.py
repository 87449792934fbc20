"""GPUs that MindSpore cannot use are refused before ranks start, with what it lacks."""

import re
import sys
from types import SimpleNamespace

import pytest
from suite import needs

from hccl_tools.common.refusal import NotHere, Refusal
from tools.launch.devices import device_check
from tools.logs import known_failures
from tools.trainer import gpu_backend, job

# what MindSpore 2.10 raises, shortened
SAID = """\
Unsupported device target GPU. This process only supports one of the ['CPU']. Please check whether the GPU environment \
is installed and configured correctly, and check whether current mindspore wheel package was built with "-e GPU".

- Device load error message:
Load dynamic library: libmindspore_ascend.so.2 failed. libge_runner.so: cannot open shared object file
"""
LOADING = "Load dynamic library: libmindspore_gpu.so.11.6 failed. libcublas.so.11: cannot open shared object file\n"
CANNOT_LOAD = "MindSpore cannot load libmindspore_gpu.so.11.6: libcublas.so.11: cannot open shared object file"


@pytest.fixture
def cuda(tmp_path, monkeypatch):
    """cuda("11.6"): CUDA_HOME, with an nvcc of that version; cuda(None): without one."""

    def made(version):
        monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
        nvcc = tmp_path / "cuda" / "bin" / "nvcc"
        nvcc.parent.mkdir(parents=True)
        if version:
            nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {version}, V{version}.1'\n")
            nvcc.chmod(0o755)

    monkeypatch.delenv("CUDA_HOME", raising=False)
    return made


@pytest.fixture
def mindspore(tmp_path, monkeypatch):
    """mindspore("11.1", raises="..."): a package with back ends for these versions of CUDA; set_context raises that."""

    def made(*versions, raises=""):
        plugins = tmp_path / "packages" / "mindspore" / "lib" / "plugin"
        plugins.mkdir(parents=True)
        for version in versions:
            (plugins / f"libmindspore_gpu.so.{version}").touch()
        body = f"SAID = {raises!r}\ndef set_context(device_target):\n    if SAID:\n        raise RuntimeError(SAID)\n"
        (plugins.parents[1] / "__init__.py").write_text(body)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
        monkeypatch.syspath_prepend(str(tmp_path / "packages"))
        monkeypatch.delitem(sys.modules, "mindspore", raising=False)
        monkeypatch.setenv("PYTHON", sys.executable)

    return made


def test_a_library_that_is_missing_is_named(mindspore, cuda):
    mindspore("11.1", "11.6")
    cuda("11.6")
    assert gpu_backend.refusal(SAID + LOADING).startswith(f"{CANNOT_LOAD}; install what docs/gpu.md lists")


def test_a_mindspore_without_gpus_is_named(mindspore, cuda):
    mindspore()
    cuda("11.6")
    assert gpu_backend.refusal(SAID) == "this MindSpore has no GPU back end; install one that has"


def test_cuda_home_that_is_not_set_has_no_nvcc_or_another_version_is_named(mindspore, cuda):
    mindspore("11.6", "11.1")
    assert gpu_backend.refusal(SAID).startswith("CUDA_HOME is not set")
    cuda(None)
    assert "/cuda has no bin/nvcc" in gpu_backend.refusal(SAID)


def test_a_version_of_cuda_without_a_back_end_is_named(mindspore, cuda):
    mindspore("11.6", "11.1")
    cuda("12.4")
    assert "this MindSpore is for CUDA 11.1 and 11.6, and nvcc in CUDA_HOME" in gpu_backend.refusal(SAID)


def test_the_launcher_asks_mindspore_and_says_why(mindspore, cuda):
    mindspore("11.6", raises=SAID + LOADING)
    with pytest.raises(NotHere, match=re.escape(f"MindSpore cannot use GPUs: {CANNOT_LOAD};")):
        device_check.gpus_for_mindspore()


@pytest.mark.parametrize("raises", ["", "another mistake"])
def test_a_mindspore_that_says_nothing_about_gpus_is_not_refused(mindspore, cuda, raises):
    mindspore("11.6", raises=raises)
    device_check.gpus_for_mindspore()


def test_the_trainer_says_it_in_one_line_which_is_a_known_failure(monkeypatch):
    def set_device(target, number):
        raise RuntimeError(SAID + LOADING if target == "GPU" else "Unsupported device target Ascend.")

    monkeypatch.setitem(sys.modules, "mindspore", SimpleNamespace(set_device=set_device))
    with pytest.raises(Refusal) as refusal:
        job.set_device({"system": {"device_target": "GPU"}}, 0)
    (line,) = refusal.value.lines
    assert line.startswith(f"Unsupported device target GPU: {CANNOT_LOAD};")
    assert [entry.code for entry, _ in known_failures.by_lines(known_failures.load({})[0], [line], "GPU")] == [
        "no-gpu-software"
    ]
    with pytest.raises(Refusal, match="cannot use Ascend here"):
        job.set_device({"system": {"device_target": "Ascend"}}, 0)


@pytest.mark.thorough
@needs.needs_packages("mindspore")
@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("unset", "CUDA_HOME is not set"),
        (None, "has no bin/nvcc"),
        ("11.6", "MindSpore cannot load libmindspore_gpu.so.11.6: lib"),
        ("11.4", "MindSpore cannot load libmindspore_gpu.so.11.1: lib"),
        ("12.4", "this MindSpore is for CUDA 11.1 and 11.6"),
    ],
)
def test_mindspore_2_10_itself_is_understood(cuda, monkeypatch, version, said):
    if version != "unset":
        cuda(version)
    monkeypatch.setenv("PYTHON", sys.executable)
    with pytest.raises(NotHere, match=re.escape(said)):
        device_check.gpus_for_mindspore()
