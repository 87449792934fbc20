"""Checkpoints on the disk: whole or passed over, chosen by all ranks alike, refused with a reason."""

import os
import types

import pytest
from checkpoint_files import RUN, saved
from suite.needs import Later, needs_packages

from hccl_tools.common.refusal import Refusal
from tools.trainer import checkpoints
from tools.trainer.checkpoints import CheckpointError, choosing, labels, saving

ms, nn, np = Later("mindspore"), Later("mindspore.nn"), Later("numpy")
resume = Later("tools.trainer.resume")

pytestmark = [needs_packages("mindspore", "numpy"), pytest.mark.thorough]


@pytest.fixture(autouse=True)
def on_cpu():
    ms.set_device("CPU")


def chosen(root, rank=0, ranks=1, model="lenet5", others=()):
    found = choosing.choose(str(root), rank, ranks, model, lambda points: [points, *others])
    return found and found[1].epoch


def test_a_checkpoint_is_read_as_it_was_saved(tmp_path):
    net, other = nn.Dense(2, 3), nn.Dense(2, 3)
    path = saved(tmp_path, net=net)
    saving.load(path, other)
    np.testing.assert_array_equal(net.weight.asnumpy(), other.weight.asnumpy())
    assert sorted(os.listdir(tmp_path / "rank_0")) == ["lenet5-1_5.ckpt", "lenet5-1_5.json"]  # no draft is left


@pytest.mark.parametrize("kept", range(0, 100, 7))
def test_a_torn_checkpoint_is_passed_over_wherever_it_was_torn(tmp_path, kept):
    saved(tmp_path, epoch=1)
    path = saved(tmp_path, epoch=2)
    assert chosen(tmp_path) == 2
    with open(path, "rb") as file:
        content = file.read()
    os.chmod(path, 0o600)
    with open(path, "wb") as file:
        file.write(content[: len(content) * kept // 100])
    assert chosen(tmp_path) == 1
    with pytest.raises(CheckpointError, match="damaged or cut off"):
        saving.read(path)


def test_a_checkpoint_with_one_other_byte_or_without_its_label_is_passed_over(tmp_path):
    saved(tmp_path, epoch=1)
    second, third = saved(tmp_path, epoch=2), saved(tmp_path, epoch=3)
    os.unlink(third[: -len("ckpt")] + "json")
    assert chosen(tmp_path) == 2
    os.chmod(second, 0o600)
    with open(second, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    assert chosen(tmp_path) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"epoch": "2"}', "null"])
def test_a_torn_label_labels_nothing(tmp_path, text):
    saved(tmp_path, epoch=1)
    path = saved(tmp_path, epoch=2)
    with open(path[: -len("ckpt")] + "json", "w", encoding="utf-8") as file:
        file.write(text)
    assert chosen(tmp_path) == 1


def test_a_draft_that_a_killed_job_left_is_written_over(tmp_path):
    folder = tmp_path / "rank_0"
    folder.mkdir()
    (folder / ".lenet5-1_5.part.ckpt").write_bytes(b"torn")
    (folder / ".lenet5-1_5.part.ckpt").chmod(0o400)
    saved(tmp_path)
    assert chosen(tmp_path) == 1


def test_all_ranks_go_on_from_the_newest_that_all_have(tmp_path):
    for rank, epochs in ((0, (1, 2, 3)), (1, (1, 2)), (2, (2, 3))):
        for epoch in epochs:
            saved(tmp_path, rank, 3, epoch)
    points = [[(RUN, epoch, 5) for epoch in epochs] for epochs in ((3, 2, 1), (2, 1), (3, 2))]
    for rank in range(3):
        found = choosing.choose(str(tmp_path), rank, 3, "lenet5", lambda own: points)
        assert found[1].epoch == 2 and found[1].rank == rank
    assert choosing.choose(str(tmp_path), 0, 3, "lenet5", lambda own: [own, []]) is None


def test_a_run_that_was_begun_anew_does_not_go_on_from_an_older_ones(tmp_path):
    saved(tmp_path, epoch=8)
    assert chosen(tmp_path) == 8
    labels.begin(checkpoints.rank_folder(str(tmp_path), 0), RUN + 1)
    assert chosen(tmp_path) is None
    assert saving.free_prefix(str(tmp_path / "rank_0"), "lenet5") == "lenet5_1"  # and writes nothing over
    saved(tmp_path, epoch=1, run=RUN + 1, model="lenet5")
    assert chosen(tmp_path) == 1


def test_only_the_runs_own_old_checkpoints_are_removed(tmp_path):
    folder = str(tmp_path / "rank_0")
    saved(tmp_path, epoch=9, run=RUN - 1)
    (tmp_path / "rank_0" / "mine.ckpt").write_text("a person's own")
    for epoch in (1, 2, 3, 4):
        saved(tmp_path, epoch=epoch)
    saving.remove_old(folder, RUN, 2)
    names = {name for name in os.listdir(folder) if name.endswith(".ckpt")}
    assert names == {"lenet5-3_5.ckpt", "lenet5-4_5.ckpt", "lenet5-9_5.ckpt", "mine.ckpt"}


def test_a_checkpoint_of_another_network_or_number_of_ranks_is_refused_in_words(tmp_path):
    saved(tmp_path, ranks=4)
    with pytest.raises(CheckpointError, match="for the network lenet5, but this config has resnet50"):
        chosen(tmp_path, ranks=4, model="resnet50")
    with pytest.raises(
        CheckpointError, match=r"comes from a job of 4 ranks, but this job has 2; .*convert_ckpt.py .* --ranks 2"
    ):
        chosen(tmp_path, ranks=2)


def test_weights_that_do_not_fit_are_refused_before_any_is_loaded(tmp_path):
    path = saved(tmp_path)
    wide = nn.Dense(2, 4)
    before = wide.weight.asnumpy().copy()
    with pytest.raises(CheckpointError, match=r"weight has the shape \(3, 2\), but here \(4, 2\)"):
        saving.load(path, wide)
    np.testing.assert_array_equal(wide.weight.asnumpy(), before)
    with pytest.raises(CheckpointError, match="has no gamma"):
        saving.load(path, nn.LayerNorm((2,)))


@pytest.mark.parametrize(("name", "said"), [("no.ckpt", "no such file"), ("", "is a folder"), ("x.ckpt", "cannot be")])
def test_what_is_no_checkpoint_is_named(tmp_path, name, said):
    (tmp_path / "x.ckpt").write_bytes(b"\x00garbage" * 100)
    with pytest.raises(CheckpointError, match=said):
        saving.read(str(tmp_path / name))


def test_a_checkpoint_that_a_config_names_must_be_there(tmp_path):
    config = {"train": {"pretrained": str(tmp_path / "no.ckpt"), "resume_from": str(tmp_path / "x")}}
    (tmp_path / "x").write_text("a file")
    first, second = checkpoints.problems(config)
    assert first.pointer == "/train/pretrained" and "no.ckpt: no such file" in first.text
    assert second.pointer == "/train/resume_from" and "x: is not a folder" in second.text


def test_training_starts_from_pretrained_weights_unless_it_goes_on(tmp_path, monkeypatch):
    monkeypatch.delenv("RESUME", raising=False)
    net, other = nn.Dense(2, 3), nn.Dense(2, 3)
    section = {"pretrained": saved(tmp_path / "old", net=net), "ckpt_save_dir": str(tmp_path / "new")}
    earlier = resume.Continuation({"model": {"name": "lenet5"}, "train": section}, 0, 1, 5)
    earlier.load(other, None, None)
    assert earlier.epochs == 0
    np.testing.assert_array_equal(net.weight.asnumpy(), other.weight.asnumpy())


def test_a_checkpoint_that_cannot_be_written_ends_the_training_with_a_reason(tmp_path):
    (tmp_path / "file").touch()
    label = labels.Label(model="lenet5", mode="data_parallel", run=RUN, rank=0, ranks=1)
    section = {"keep_checkpoint_max": 3, "integrated_save": True}
    callback = resume.SaveCheckpoints(nn.Dense(2, 3), str(tmp_path / "file" / "x"), "lenet5", label, section)
    run = types.SimpleNamespace(cur_epoch_num=1, batch_num=5, cur_step_num=5)
    with pytest.raises(Refusal, match="no checkpoint could be saved in .*/file/x: Not a directory") as refused:
        callback.on_train_epoch_end(types.SimpleNamespace(original_args=lambda: run))
    assert refused.value.status == 1


def test_a_file_in_the_place_of_a_ranks_folder_ends_the_training_with_a_reason(tmp_path):
    (tmp_path / "rank_0").touch()
    section = {"ckpt_save_dir": str(tmp_path)}
    config = {"model": {"name": "lenet5"}, "train": section, "parallel": {"mode": "data_parallel"}}
    with pytest.raises(Refusal, match="no checkpoint could be saved in .*/rank_0: File exists"):
        resume.Continuation(config, 0, 1, 5).saving(nn.Dense(2, 3))
