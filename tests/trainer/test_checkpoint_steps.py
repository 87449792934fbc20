"""Checkpoints every so many steps, and a run that goes on from the middle of an epoch."""

import os
import shutil
import types

import pytest
import ranks
from checkpoint_files import RUN, values
from suite.needs import Later, needs_packages

from tools import train
from tools.trainer.checkpoints import choosing, labels, saving

nn, np = Later("mindspore.nn"), Later("numpy")
agreement, resume = Later("tools.trainer.agreement"), Later("tools.trainer.resume")

pytestmark = [needs_packages("mindspore", "sklearn"), pytest.mark.thorough, pytest.mark.trains]
EPOCH_STEPS = 5


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    """trainer(folder, *assignments): trains LeNet-5 alone, 5 steps an epoch, in this process; returns the exit code."""
    root = tmp_path_factory.mktemp("checkpoint_steps")
    config, data = ranks.config_without_eval("mnist/lenet5_digits.yaml", root), ranks.digits(root / "data", 40)

    def run(folder, *more):
        common = ["system.distribute=False", "system.device_target=CPU", "train.loader.batch_size=8"]
        words = ranks.settings(data, folder, train__loader__shuffle=True, scheduler__scheduler="cosine_decay")
        return train.main(["-c", str(config), "-o", *common, *words, *more])

    return run


@pytest.fixture(scope="module")
def undisturbed(trainer, tmp_path_factory):
    """The folder of rank 0 of three epochs, 15 steps, with a checkpoint every 4."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert trainer(folder, *every_four(100)) == 0
    return folder / "rank_0"


def every_four(keep):
    return ["scheduler.num_epochs=3", "train.save_checkpoint_steps=4", f"train.keep_checkpoint_max={keep}"]


def checkpoints_in(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".ckpt"))


def copied(undisturbed, name, root):
    """`root` with one checkpoint of the undisturbed run, as if it had ended there."""
    (root / "rank_0").mkdir(parents=True)
    for end in ("ckpt", "json"):
        shutil.copy(undisturbed / f"{name}.{end}", root / "rank_0")
    return root


def test_a_checkpoint_comes_every_so_many_steps_of_the_run_and_after_the_last(undisturbed):
    assert checkpoints_in(undisturbed) == [f"lenet5-{step}.ckpt" for step in ("1_4", "2_3", "3_2", "3_5")]


def test_the_newest_are_kept_under_the_prefix_that_the_config_names(trainer, tmp_path):
    assert trainer(tmp_path, *every_four(2), "train.ckpt_prefix=my-net") == 0
    assert checkpoints_in(tmp_path / "rank_0") == ["my-net-3_2.ckpt", "my-net-3_5.ckpt"]


@pytest.mark.parametrize(("name", "said"), [("1_4", "step 4 of epoch 1"), ("3_2", "step 2 of epoch 3")])
def test_a_run_goes_on_in_the_middle_of_an_epoch_as_if_nothing_had_happened(
    trainer, undisturbed, tmp_path, monkeypatch, capsys, name, said
):
    root = copied(undisturbed, f"lenet5-{name}", tmp_path)
    monkeypatch.setenv("RESUME", "1")
    assert trainer(root, *every_four(100)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"continues after {said}, from {root}/rank_0/lenet5-{name}.ckpt" in lines
    epoch, step = map(int, name.split("_"))
    first = next(line for line in lines if line.startswith("epoch: "))
    assert first.startswith(
        f"epoch: {epoch} step: {step + 1}, " if step < EPOCH_STEPS else f"epoch: {epoch + 1} step: 1"
    )
    own, other = values(root / "rank_0" / "lenet5-3_5.ckpt"), values(undisturbed / "lenet5-3_5.ckpt")
    assert ranks.furthest(own, other) == 0 and own["global_step"] == 3 * EPOCH_STEPS
    later = [found for found in checkpoints_in(undisturbed) if found >= f"lenet5-{name}"]
    assert checkpoints_in(root / "rank_0") == later


def test_with_data_sinking_the_middle_of_an_epoch_is_refused_in_a_line(trainer, undisturbed, tmp_path, capsys):
    root = copied(undisturbed, "lenet5-2_3", tmp_path / "old")
    sink = ["train.dataset_sink_mode=True", f"train.resume_from={root}"]
    assert trainer(tmp_path / "new", *sink, "scheduler.num_epochs=3") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "after step 3 of 5 of an epoch" in line and "-o train.dataset_sink_mode=False" in line


@pytest.mark.parametrize(("steps", "done"), [(22, (2, 10)), (11, (2, 5)), (14, (2, 6)), (44, (2, 20))])
def test_with_other_ranks_the_same_share_of_the_epoch_is_done(steps, done):
    label = labels.Label(model="lenet5", mode="m", run=RUN, epoch=3, steps=10, epoch_steps=22, rank=0, ranks=2)
    assert label.done(steps) == done
    assert label.replace(steps=22).done(steps) == label.replace(epoch_steps=0).done(steps) == (3, 0)


class Saver:
    """A callback whose saving only notes (epoch, step)."""

    def __init__(self, every, done=0):
        label = labels.Label(model="lenet5", mode="m", run=RUN, rank=0, ranks=1)
        section = {"save_checkpoint_steps": every, "integrated_save": True, "keep_checkpoint_max": 9}
        self.callback = resume.SaveCheckpoints(nn.Dense(1, 1), "nowhere", "x", label, section, done)
        self.run = types.SimpleNamespace(cur_step_num=0, batch_num=EPOCH_STEPS)
        self.run.original_args = lambda: self.run
        self.callback.on_train_begin(self.run)

    def epochs(self, numbers, per_call):
        """Plays MindSpore, which calls back every `per_call` steps."""
        for number in numbers:
            self.run.cur_epoch_num = number
            for _ in range(EPOCH_STEPS // per_call):
                self.run.cur_step_num += per_call
                self.callback.on_train_step_end(self.run)
            self.callback.on_train_epoch_end(self.run)
        self.callback.on_train_end(self.run)


@pytest.mark.parametrize(
    ("every", "per_call", "done", "saved"),
    [
        (None, 1, 0, [(1, 5), (2, 5), (3, 5)]),
        (1000, 1, 0, [(3, 5)]),
        (7, 1, 0, [(2, 2), (3, 4), (3, 5)]),
        (7, 5, 0, [(2, 5), (3, 5)]),  # with data sinking, at the end of the epoch into which a step falls
        (7, 1, 5, [(2, 2), (3, 4), (3, 5)]),
    ],
)
def test_when_checkpoints_are_saved(monkeypatch, every, per_call, done, saved):
    found = []
    monkeypatch.setattr(
        saving, "save", lambda net, folder, prefix, label, whole: found.append((label.epoch, label.steps))
    )
    Saver(every, done).epochs(range(1 + done // EPOCH_STEPS, 4), per_call)
    assert found == saved


def test_of_one_epoch_the_later_step_is_newer(tmp_path):
    label = labels.Label(model="lenet5", mode="m", run=RUN, epoch=1, epoch_steps=22, rank=0, ranks=1)
    net, folder = nn.Dense(1, 1), tmp_path / "rank_0"
    for step in (10, 3, 20, 7):
        saving.save(net, str(folder), "x", label.replace(steps=step))
    assert choosing.choose(str(tmp_path), 0, 1, "lenet5")[1].steps == 20
    # another rank was killed before it saved the 20th
    assert choosing.choose(str(tmp_path), 0, 1, "lenet5", lambda own: [own, own[1:]])[1].steps == 10
    saving.remove_old(str(folder), RUN, 2)
    assert checkpoints_in(folder) == ["x-1_10.ckpt", "x-1_20.ckpt"]


@pytest.mark.parametrize(("count", "kept"), [(1, ["x-2_5.ckpt"]), (2, ["x-1_5.ckpt", "x-2_5.ckpt"])])
def test_a_rank_keeps_the_checkpoint_that_another_may_still_need(tmp_path, count, kept):
    """With keep_checkpoint_max=1 a job of several ranks would have none that all have, had one of them ended here."""
    label = labels.Label(model="lenet5", mode="m", run=RUN, rank=0, ranks=count)
    section = {"integrated_save": True, "keep_checkpoint_max": 1}
    callback = resume.SaveCheckpoints(nn.Dense(1, 1), str(tmp_path), "x", label, section)
    for epoch in (0, 1, 2):
        run = types.SimpleNamespace(cur_epoch_num=epoch, cur_step_num=5 * epoch + 5, batch_num=5)
        callback.on_train_epoch_end(types.SimpleNamespace(original_args=lambda run=run: run))
    assert checkpoints_in(tmp_path) == kept


def test_ranks_tell_each_other_epochs_and_steps(monkeypatch):
    points = [(RUN, 3, 10), (RUN, 2, 22)]
    monkeypatch.setattr("tools.trainer.agreement._all_gather", lambda numbers: np.array([numbers, numbers], np.int32))
    assert agreement.gather_points(points) == [points, points]


def test_a_full_disk_ends_the_training_with_a_line_and_leaves_nothing_torn(trainer, tmp_path, capsys):
    with ranks.no_file_longer_than(20_000):  # the weights have 250,000 bytes
        assert trainer(tmp_path, "scheduler.num_epochs=1") == 1
    assert f"train.py: no checkpoint could be saved in {tmp_path}/rank_0: " in capsys.readouterr().err.splitlines()[-1]
    assert checkpoints_in(tmp_path / "rank_0") == []


def test_a_label_without_the_new_fields_is_of_a_whole_epoch(tmp_path):
    label = labels.Label(model="lenet5", mode="data_parallel", run=RUN, epoch=2, steps=22, rank=0, ranks=1)
    old = {name: value for name, value in label.as_dict().items() if name not in ("epoch_steps", "whole")}
    labels.write_json(str(tmp_path / "lenet5-2_22.json"), old)
    (read,) = labels.read(str(tmp_path)).values()
    assert read.done(22) == (2, 0) and read.whole == 1


def test_a_prefix_that_is_no_file_name_is_refused(trainer, tmp_path, capsys):
    assert trainer(tmp_path, "train.ckpt_prefix=../x") == 2
    assert "/train/ckpt_prefix: " in capsys.readouterr().err
