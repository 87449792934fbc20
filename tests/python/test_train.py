"""The trainer alone: its data, its networks, and what it says when it cannot train."""

import os
import pathlib
import struct
import subprocess
import sys

import pytest

from hccl_tools import schema_check
from tools import datasets

PROJECT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = PROJECT / "configs" / "mnist" / "lenet5_digits.yaml"


def idx(folder, images=20, labels=20, magic=0x803):
    """Two IDX files in `folder`, of the given lengths."""
    folder.mkdir(parents=True, exist_ok=True)
    header = struct.pack(">4I", magic, images, 28, 28)
    (folder / "train-images-idx3-ubyte").write_bytes(header + bytes(784 * images))
    (folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, labels) + bytes(labels))
    return {"type": "mnist", "dataset_root": str(folder)}


def test_good_data_is_accepted(tmp_path):
    datasets.check(idx(tmp_path), batch_size=10, shards=2)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"labels": 19}, "20 images but 19 labels"),
        ({"magic": 0x1F8B0800}, "not in MNIST's IDX format; was it unpacked?"),
        ({"images": 19, "labels": 19}, "19 samples, 9 for each of 2 ranks: less than one batch of 10"),
    ],
)
def test_bad_data_is_named(tmp_path, wrong, said):
    with pytest.raises(datasets.DataError, match=said.replace("?", r"\?")):
        datasets.check(idx(tmp_path, **wrong), batch_size=10, shards=2)


def test_a_folder_without_the_files_is_named(tmp_path):
    with pytest.raises(datasets.DataError, match=r"has no file \*-images-idx3-ubyte"):
        datasets.check({"dataset_root": str(tmp_path)}, 1, 1)


def test_a_relative_folder_counts_from_here_then_from_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert datasets.locate("configs") == str(PROJECT / "configs")
    (tmp_path / "configs").mkdir()
    assert datasets.locate("configs") == str(tmp_path / "configs")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--config", "nix.yaml"], "nix.yaml: no such file"),
        (["--config", str(DIGITS), "-o", "train.dataset.dataset_root=nix"], "dataset_root nix: no such folder"),
        (["--config", str(DIGITS), "-o", "system.mod=1"], 'did you mean "mode"?'),
    ],
)
def test_a_trainer_that_cannot_train_says_so_in_a_line_before_it_loads_mindspore(tmp_path, arguments, said):
    (tmp_path / "mindspore.py").write_text("raise SystemExit('imported')")
    command = [sys.executable, str(PROJECT / "tools" / "train.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_networks_of_the_schema_are_those_there_are_and_give_a_logit_a_class():
    ms = pytest.importorskip("mindspore")
    import numpy as np

    from tools import models

    schema = schema_check.load_schema("train_config")
    assert sorted(models.MODELS) == sorted(schema["$defs"]["model"]["properties"]["name"]["enum"])
    ms.set_device("CPU")
    network = models.build({"name": "lenet5", "num_classes": 7})
    assert network(ms.Tensor(np.zeros((3, 1, 32, 32), np.float32))).shape == (3, 7)
