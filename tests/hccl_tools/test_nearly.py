"""The file that a person may have meant by a name that is not there."""

import difflib
import os

import pytest

from hccl_tools.common import nearly
from hccl_tools.hosts import hostfile
from hccl_tools.table import rank_table
from tools.config import config_file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with some files."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "trainer.py", "README.md", "hccl_8p_01234567_127.0.0.1.json", "hccl_4p_4567_127.0.0.1.json", "rank_1.log",
        "configs/crnn/resnet.yaml", "notes/resnet.txt", "a.json", "Ünïcode.py",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("trainr.py", "trainer.py"),
        ("trainer.yp", "trainer.py"),
        ("trainer", "trainer.py"),
        ("Trainer.py", "trainer.py"),
        ("./trainr.py", "./trainer.py"),
        ("readme.md", "README.md"),
        ("hccl_8p_10234567_127.0.0.1.json", "hccl_8p_01234567_127.0.0.1.json"),
        ("hccl_8p_0123456_127.0.0.1.json", "hccl_8p_01234567_127.0.0.1.json"),
        ("hccl_8p_01234567_127.0.0.1.jsn", "hccl_8p_01234567_127.0.0.1.json"),
        ("config/crnn/resnet.yaml", "configs/crnn/resnet.yaml"),
        ("config/crn/resnet.yml", "configs/crnn/resnet.yaml"),
        ("configs/crnn/resent.yaml", "configs/crnn/resnet.yaml"),
        ("Ünïcde.py", "Ünïcode.py"),
    ],
)
def test_a_name_that_is_nearly_right_is_found(folder, typed, meant):
    assert nearly.suggestion(typed) == meant


def test_a_path_from_the_root_stays_one(folder):
    assert nearly.suggestion(str(folder / "trainr.py")) == str(folder / "trainer.py")


@pytest.mark.parametrize(
    "typed",
    ["", "/", "trainer.py", "b.json", "rank_2.log", "rank_11.log", "hccl_4p_0123_127.0.0.1.json", "model.ckpt",
     "none/such/file.py", "trainer.py/x", "configs/crnn", "crnn/resnet.yaml", "x" * 5000],
)  # fmt: skip
def test_nothing_is_suggested_where_nothing_is_nearly_the_same(folder, typed):
    assert nearly.suggestion(typed) is None
    assert nearly.question(typed) == ""


def test_a_folder_is_not_suggested_for_a_file(folder):
    (folder / "trains").mkdir()
    assert nearly.suggestion("trainz.py") == "trainer.py"
    assert nearly.suggestion("notez") is None


def test_a_folder_with_very_many_files_costs_no_more_than_one_with_some(tmp_path, monkeypatch):
    monkeypatch.setattr(nearly, "_MOST_NAMES", 3)
    for number in range(50):
        (tmp_path / f"image{number:02}x.png").touch()
    asked = []
    monkeypatch.setattr(nearly, "_is_numbered", lambda name, other: asked.append(other) or True)
    assert nearly.suggestion(str(tmp_path / "trainer.py")) is None
    assert len(asked) == 3


def test_of_a_program_and_its_log_the_program_is_meant(folder):
    for name in ("train.log", "train.py"):
        (folder / name).touch()
    assert nearly.suggestion("./train") == "./train.py"
    assert nearly.suggestion("trian.log") == "train.log"


def test_names_that_are_all_alike_cost_no_more_than_some(tmp_path, monkeypatch):
    compared = []
    ratio = difflib.SequenceMatcher.ratio
    monkeypatch.setattr(difflib.SequenceMatcher, "ratio", lambda matcher: compared.append(matcher) or ratio(matcher))
    for length in range(60, 200):
        (tmp_path / ("a" * length)).touch()
        (tmp_path / ("b" * 30 + str(length))).mkdir()
    assert nearly.suggestion(str(tmp_path / ("a" * 59))) == str(tmp_path / ("a" * 60))
    assert nearly.suggestion(str(tmp_path / ("a" * 250))) is None
    assert len(compared) <= 50
    compared.clear()
    looked = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: looked.append(folder) or scandir(folder))
    assert nearly.suggestion(str(tmp_path / ("b" * 30) / "none.py")) is None
    assert len(looked) <= 5 and len(compared) <= 50


def test_the_question_is_for_the_end_of_a_message(folder):
    (folder / "tr\x1bainy.py").touch()
    assert nearly.question("trainr.py") == "; did you mean trainer.py?"
    (folder / "trainer.py").unlink()
    assert nearly.question("trainy.py") == "; did you mean tr\\x1bainy.py?"


def test_a_table_a_hostfile_and_a_config_are_suggested(folder):
    for name in ("hosts.txt", "train.yaml"):
        (folder / name).touch()
    with pytest.raises(rank_table.NotReadable, match="; did you mean hccl_8p_01234567_127.0.0.1.json[?]$"):
        rank_table.read_bytes("hccl_8p_10234567_127.0.0.1.json")
    with pytest.raises(hostfile.HostfileError, match="; did you mean hosts.txt[?]$"):
        hostfile.read("host.txt")
    with pytest.raises(config_file.ConfigError, match="; did you mean train.yaml[?]$"):
        config_file.load("trian.yaml")
