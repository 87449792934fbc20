"""--rank_folder: what each rank's folder gets, and which words of its command change."""

import os

import pytest
from launching import request

from hccl_tools.common.refusal import Refusal
from tools.launch import rank_folders


@pytest.fixture
def net(tmp_path, monkeypatch):
    """A folder as public nets have it; the current one is its scripts/."""
    for path in ("train.py", "config.yaml", "src/net.py", "src/__pycache__/net.pyc", "scripts/run.sh", "data/big"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def chosen(files=None):
    given = {"rank_folder": "1"} if files is None else {"rank_files": files}
    return rank_folders.choose(request(**given), "logs/run")


def files_of(folder):
    return sorted(
        os.path.relpath(os.path.join(above, name), folder) for above, _, names in os.walk(folder) for name in names
    )


def test_what_is_usual_is_copied_and_data_are_not(net):
    paths = chosen()
    assert paths == ["train.py", "config.yaml", "src"]
    folder = rank_folders.make("logs/run", 3, paths)
    assert folder == "logs/run/folders/rank_3"
    assert files_of(folder) == ["config.yaml", "src/net.py", "train.py"]
    (net / folder / "train.py").write_text("changed by the rank")
    assert rank_folders.make("logs/run", 3, paths) == folder  # of a restart: it stays
    assert (net / folder / "train.py").read_text() == "changed by the rank"
    assert (net / "train.py").read_text() == "train.py"


def test_files_of_the_folder_above_are_copied_to_the_top(net, monkeypatch):
    monkeypatch.chdir(net / "scripts")
    paths = chosen("../*.py, ../src,run.sh")
    assert files_of(rank_folders.make("logs/run", 0, paths)) == ["run.sh", "src/net.py", "train.py"]
    words = ["python", "-u", "../train.py", "../train.py", "--x"]
    assert rank_folders.command(words, 3, paths) == ["python", "-u", "train.py", "../train.py", "--x"]


def test_a_place_below_stays_and_logs_are_never_copied(net):
    (net / "logs" / "run").mkdir(parents=True)
    paths = chosen("src/*.py,*")
    assert "logs" not in paths and paths[0] == "src/net.py"
    assert "src/net.py" in files_of(rank_folders.make("logs/run", 0, chosen("src/*.py")))


@pytest.mark.parametrize(
    ("word", "there"),
    [("train.py", "train.py"), ("./src/net.py", "src/net.py"), ("data/big", "{net}/data/big"), ("none.py", "none.py")],
)
def test_what_is_not_copied_gets_its_whole_path(net, word, there):
    assert rank_folders.command(["python", word], 2, chosen()) == ["python", there.format(net=net)]
    assert rank_folders.command(["python", word + "::test"], 2, chosen())[1] == there.format(net=net) + "::test"


def test_words_that_name_what_is_not_there(net):
    asked = request("train.py", "--data=data", "data/big", rank_folder="1", program="1")
    (said,) = rank_folders.remarks(asked, chosen())
    assert said.startswith("note: --data=data names something of this folder, which the ranks' folders do not have")
    asked = request("train.py", "--config", "config.yaml", f"{net}/data", rank_folder="1", program="1")
    assert rank_folders.remarks(asked, chosen()) == []


def test_what_cannot_be_copied(net, monkeypatch):
    with pytest.raises(Refusal, match=r"--rank_files \*.cc: nothing of this name is in "):
        chosen("*.py,*.cc")
    monkeypatch.setattr(rank_folders, "MOST_BYTES", 10)
    with pytest.raises(Refusal, match="with config.yaml each rank gets more than 10000 files or 10 bytes"):
        chosen()
