"""eval.py: what it says when it cannot measure; that it measures what train.py did is in trainers.bats."""

import pathlib

import pytest

from tools import eval as evaluation

pytest.importorskip("numpy", reason="needs NumPy")

from tools import prepare_cifar10

pytestmark = [pytest.mark.thorough, pytest.mark.trains]

PROJECT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = PROJECT / "configs" / "cls" / "resnet" / "resnet50_cifar10_cpu.yaml"


@pytest.fixture
def data(tmp_path, monkeypatch):
    """DATA_PATH, with a set of 6 x 20 images."""
    assert prepare_cifar10.main([str(tmp_path), "--images", "20"]) == 0
    monkeypatch.setenv("DATA_PATH", str(tmp_path))
    return tmp_path


def said(capsys, *arguments):
    """The one line on stderr of a refusal."""
    capsys.readouterr()
    assert evaluation.main(["-c", str(CONFIG), *map(str, arguments)]) == 2
    line, end = capsys.readouterr().err.split("\n")
    assert end == ""
    return line


def test_what_is_missing_is_named(data, capsys):
    assert "--ckpt nix.ckpt: no such file" in said(capsys, "--ckpt", "nix.ckpt")
    assert 'did you mean "name"?' in said(capsys, "--ckpt", "x", "-o", "model.nam=x")
    (data / "test_batch.bin").unlink()
    assert "has no file test_batch.bin" in said(capsys, "--ckpt", "x")


def test_a_config_without_held_out_data_is_named(data, tmp_path, capsys):
    text = CONFIG.read_text(encoding="utf-8")
    (tmp_path / "c.yaml").write_text(text[: text.index("eval:")], encoding="utf-8")
    assert evaluation.main(["-c", str(tmp_path / "c.yaml"), "--ckpt", "x"]) == 2
    assert "has no section eval:" in capsys.readouterr().err


def test_a_file_that_is_no_checkpoint_is_named(data, tmp_path, capsys):
    pytest.importorskip("mindspore", reason="needs MindSpore")
    (tmp_path / "x.ckpt").write_bytes(b"not one")
    assert "x.ckpt" in said(capsys, "--ckpt", tmp_path / "x.ckpt", "-o", "model.num_classes=3")
