"""A folder of checkpoints in which anything is damaged: what cannot be read counts as missing, or a message tells."""

import contextlib
import glob
import json
import os
import pathlib
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.trainer.checkpoints import CheckpointError, choosing, labels, rank_folder

RUN = 1_800_000_000


def saved(root, epoch, run=RUN):
    """A file that is labelled as the checkpoint of an epoch of rank 0 of 1; returns its path."""
    folder = rank_folder(str(root), 0)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"lenet5-{epoch}_5-{run}.ckpt")
    pathlib.Path(path).write_bytes(b"weights" * epoch)
    label = labels.Label(model="lenet5", mode="data_parallel", run=run, epoch=epoch, steps=5, rank=0, ranks=1)
    labels.write(path, labels.sized(path, label))
    return path


def chosen(root, rank=0):
    found = choosing.choose(str(root), rank, 1, "lenet5")
    return found and found[1].epoch


def test_the_name_of_a_network_in_a_label_reaches_no_terminal_as_it_is(tmp_path):
    path = saved(tmp_path, 1)
    labels.write(path, labels.read(os.path.dirname(path))[path].replace(model="\x1b]0;x\x07\u202e"))
    with pytest.raises(CheckpointError, match=r"is for the network \\x1b\]0;x\\x07\\u202e, but this config has"):
        chosen(tmp_path)


# What a damaged file of ours may hold; None: it is a folder.
DAMAGED = ["", "{", "[]", "{}", '{"epoch": "2"}', "null", "\0\1\udcff", "[" * 9999, "9" * 5000, '{"run": 1e999}', None]


def damage(path, text):
    """Puts `text` in the place of the file."""
    if os.path.exists(path):
        os.unlink(path)
    if text is None:
        os.mkdir(path)
        return
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_torn_label_labels_nothing(tmp_path, text):
    saved(tmp_path, epoch=1)
    path = saved(tmp_path, epoch=2)
    damage(path[: -len("ckpt")] + "json", text)
    assert chosen(tmp_path) == 1


@pytest.mark.parametrize(("field", "value"), [("ranks", 10**18), ("epoch", -1), ("run", 1 << 40), ("epoch", True)])
def test_a_label_with_an_impossible_number_labels_nothing(tmp_path, field, value):
    saved(tmp_path, epoch=1)
    path = labels.path_of(saved(tmp_path, epoch=2))
    damage(path, json.dumps({**json.loads(pathlib.Path(path).read_text()), field: value}))
    assert chosen(tmp_path) == 1
    assert choosing.in_all_ranks(str(tmp_path))[0][1].epoch == 1


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_without_a_readable_mark_the_newest_checkpoint_counts_and_the_log_says_so(tmp_path, text, capsys):
    saved(tmp_path, epoch=3)
    saved(tmp_path, epoch=1, run=RUN + 1)
    damage(str(tmp_path / "rank_0" / labels.NEWEST), text)
    assert chosen(tmp_path) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("rank_0/newest_run.json is damaged; the newest of all checkpoints next to it is used")


def test_a_folder_that_may_not_be_read_is_not_one_without_checkpoints(tmp_path, as_a_user_without_rights):
    saved(tmp_path, epoch=1)
    with as_a_user_without_rights(tmp_path / "rank_0"):
        for choose in (lambda: chosen(tmp_path), lambda: choosing.in_all_ranks(str(tmp_path))):
            with pytest.raises(CheckpointError, match="rank_0 cannot be read; give this user the permission"):
                choose()


@pytest.fixture
def as_a_user_without_rights(monkeypatch):
    """A context in which a folder has no permissions; root may still read it, so access() answers for another user."""

    @contextlib.contextmanager
    def context(folder):
        folder.chmod(0)
        try:
            if os.geteuid() == 0:
                monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(str(folder)))
            yield
        finally:
            folder.chmod(0o700)

    return context


def test_ranks_come_in_their_order_whatever_that_of_the_folder_is(tmp_path, monkeypatch):
    first = saved(tmp_path, epoch=1)
    label = labels.read(os.path.dirname(first))[first]
    for rank in range(11):
        path = os.path.join(rank_folder(str(tmp_path), rank), os.path.basename(first))
        if rank:
            os.mkdir(os.path.dirname(path))
            shutil.copy(first, path)
        labels.write(path, label.replace(rank=rank, ranks=11))
    found = glob.glob
    monkeypatch.setattr(glob, "glob", lambda pattern: sorted(found(pattern), reverse=True))
    assert list(choosing.in_all_ranks(str(tmp_path))) == list(range(11))


def test_folders_that_are_no_ranks_are_passed_over(tmp_path):
    saved(tmp_path, epoch=2)
    (tmp_path / "rank_1").write_text("a file")
    for name in ("rank_²", "rank_٣", "rank_", "rank_-1", "rank_" + "9" * 200):
        (tmp_path / name).mkdir()
    assert chosen(tmp_path, rank=1) is None
    damage(labels.path_of(saved(tmp_path, epoch=3)), None)
    with pytest.raises(CheckpointError, match="no checkpoint of tools/train.py that is whole on all ranks"):
        choosing.in_all_ranks(str(tmp_path / "rank_0"))


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.one_of(st.none(), st.binary(max_size=40), st.sampled_from(DAMAGED))), max_size=3
    )
)
def test_no_damage_of_any_file_makes_choosing_raise_anything_else(whole_folder, tmp_path_factory, spoilt):
    folder = tmp_path_factory.mktemp("ckpt") / "copy"
    shutil.copytree(whole_folder, folder)
    files = sorted(folder.rglob("*.*"))
    for number, text in spoilt:
        if files[number].is_file():
            damage(str(files[number]), text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text)
    try:
        assert chosen(folder) in (None, 1, 2)
        assert choosing.in_all_ranks(str(folder))[0][1].epoch in (1, 2)
    except CheckpointError as error:
        assert error.lines[0].isprintable()


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory):
    """The checkpoints of two epochs of rank 0, and the mark: five files."""
    folder = tmp_path_factory.mktemp("whole")
    for epoch in (1, 2):
        saved(folder, epoch=epoch)
    labels.begin(str(folder / "rank_0"), RUN)
    return folder
