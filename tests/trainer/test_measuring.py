"""Held-out data that the ranks share, early stop, and data in LMDB folders."""

import io
import json
import sys
import types

import pytest
import ranks
from suite.needs import Later, needs_packages
from test_datasets import idx

from tools.config import config_file as configs
from tools.config import modes
from tools.trainer import datasets
from tools.trainer.datasets import text_lines, text_lmdb

ms, np = Later("mindspore"), Later("numpy")
measuring, metrics = Later("tools.trainer.measuring"), Later("tools.trainer.metrics")

pytestmark = [needs_packages("mindspore", "numpy"), pytest.mark.thorough, pytest.mark.trains]


def held_out(folder, samples, batch, drop):
    """A config (filled, as far as it is read here) whose held-out data are that many images; image n shows n."""
    loader = {"batch_size": batch, "shuffle": True, "drop_remainder": drop, "num_workers": 1}
    section = idx(folder, samples, samples, prefix="t10k")
    return {"eval": {"dataset": {**section, "usage": "test", "image_size": 28}, "loader": loader}}


def images(config, rank, count):
    """The batches of a rank, each as the list of its images' numbers, without what fills up the last one."""
    part = datasets.held_out(config, rank, count)
    if part is None:
        return []
    data, samples = part
    assert len(list(data.create_tuple_iterator(num_epochs=1))) == data.get_dataset_size()
    rows = list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert all(len(batch) == len(labels) == len(rows[0][0]) for batch, labels in rows)  # a network is compiled once
    shown = [[round(float(image.max() * 255)) for image in batch] for batch, _ in rows]
    full = sum(map(len, shown[:-1]))
    assert set(shown[-1][samples - full :]) <= {shown[-1][0]}
    return [*shown[:-1], shown[-1][: samples - full]]


@pytest.mark.parametrize(("samples", "batch", "drop"), [(23, 4, False), (23, 4, True), (24, 4, True), (3, 8, False)])
def test_the_ranks_measure_every_batch_once_and_in_order(tmp_path, samples, batch, drop):
    config = held_out(tmp_path / "test", samples, batch, drop)
    whole = images(config, 0, 1)
    assert sum(map(len, whole)) == (samples // batch * batch if drop else samples)
    for count in (2, 3, 5):
        assert [part for rank in range(count) for part in images(config, rank, count)] == whole


def test_held_out_data_of_less_than_a_batch_is_refused_where_only_full_batches_are_read(tmp_path):
    config = held_out(tmp_path / "test", 3, 8, True)
    with pytest.raises(datasets.DataError, match=r"has 3 samples, .*less than one batch of 8; lower loader.batch_size"):
        datasets.check_held_out(config)
    datasets.check_held_out(held_out(tmp_path / "other", 3, 8, False))


def test_who_has_a_part_of_the_network_reads_all_held_out_data():
    config = configs.load(str(ranks.CONFIGS / "parallel" / "hybrid_digits.yaml"))
    assert modes.held_out_ranks(config.filled, 4) == 1
    config.override(["parallel.mode=data_parallel"])
    assert modes.held_out_ranks(config.filled, 4) == 4


class Counting:
    """Plays a Model: every batch of held-out data is 7 of 10 right, a last one of 3 has one right.

    Seven right samples fill up the last one.
    """

    def __init__(self, metric):
        self.metric = metric

    def eval(self, batches, dataset_sink_mode):
        for right, size in batches:
            labels = np.zeros(10, np.int32)
            outputs = np.eye(2, dtype=np.float32)[[0] * right + [1] * (size - right) + [0] * (10 - size)]
            self.metric.update(ms.Tensor(outputs), ms.Tensor(labels))


def with_samples(part):
    """What `datasets.held_out` gives a rank with these batches."""
    return (part, sum(size for _, size in part)) if part else None


def measurement(parts):
    """The measurements of ranks that have these parts, and exchange what they counted."""
    own = [metrics.Accuracy() for _ in parts]
    total = [sum(column) for column in zip(*[(sum(r for r, _ in part), sum(n for _, n in part)) for part in parts])]
    return [
        measuring.HeldOut(Counting(metric), with_samples(part), {"accuracy": metric}, lambda counts: total)
        for metric, part in zip(own, parts)
    ]


def test_ranks_with_parts_of_unequal_size_and_with_none_get_the_value_of_the_whole(capsys):
    whole = [(7, 10), (7, 10), (1, 3)]
    metric = metrics.Accuracy()
    alone = measuring.HeldOut(Counting(metric), with_samples(whole), {"accuracy": metric}).values()
    assert alone == {"accuracy": 15 / 23}
    for parts in ([whole[:1], whole[1:]], [whole[:2], whole[2:], []]):
        assert [one.values() for one in measurement(parts)] == [alone] * len(parts)
    measurement([whole])[0].report("epoch: 1, ")
    assert capsys.readouterr().out == "epoch: 1, accuracy on held-out data: 65.22%\n"


def test_training_ends_after_epochs_without_an_improvement(capsys):
    values = iter([0.5, 0.6, 0.605, 0.59, 0.7])
    state = types.SimpleNamespace(cur_epoch_num=0, stopped=False)
    state.original_args = lambda: state
    state.request_stop = lambda: setattr(state, "stopped", True)
    state.get_stop_requested = lambda: state.stopped
    played = types.SimpleNamespace(report=lambda place: {"accuracy": next(values)})
    callback = measuring.Evaluate(played, {"patience": 2, "min_delta": 0.01})
    while not state.stopped:
        state.cur_epoch_num += 1
        callback.on_train_epoch_end(state)
    assert state.cur_epoch_num == 4
    said = "epoch: 4, early_stop ends the training: no improvement on the 60.00% of epoch 2\n"
    assert capsys.readouterr().out == said
    callback.on_train_epoch_end(state)  # somebody has asked the job to end, and waits: nothing is measured
    assert next(values) == 0.7


# ---- LMDB --------------------------------------------------------------------------------------------


class StandIn:
    """Plays the package lmdb, where it is not installed: an environment is a folder whose data.mdb is JSON."""

    Error = ValueError

    def open(self, path, **how):
        with open(f"{path}/data.mdb", encoding="latin-1") as file:
            content = json.load(file)
        return types.SimpleNamespace(begin=lambda: Reader(content))


class Reader(dict):
    """A transaction of the stand-in."""

    def get(self, key):
        value = super().get(key.decode())
        return None if value is None else value.encode("latin-1")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture(params=["lmdb", "a stand-in"])
def write(request, monkeypatch):
    """write(folder, {key: bytes}): makes an LMDB, with the package and with what plays it."""
    text_lmdb._environment.cache_clear()
    if request.param == "lmdb":
        lmdb = pytest.importorskip("lmdb", reason="needs lmdb")
    else:
        monkeypatch.setitem(sys.modules, "lmdb", StandIn())

    def make(folder, values):
        folder.mkdir(parents=True)
        if request.param == "lmdb":
            with lmdb.open(str(folder), map_size=1 << 20) as environment, environment.begin(write=True) as writer:
                for key, value in values.items():
                    writer.put(key.encode(), value)
        else:
            text = json.dumps({key: value.decode("latin-1") for key, value in values.items()})
            (folder / "data.mdb").write_text(text, encoding="latin-1")

    yield make
    text_lmdb._environment.cache_clear()


def samples(*texts):
    """The keys and values of an LMDB with images that say their number by their width."""
    from PIL import Image

    values = {"num-samples": str(len(texts)).encode()}
    for number, text in enumerate(texts, 1):
        content = io.BytesIO()
        Image.new("L", (10 * number, 32), 200).save(content, "PNG")
        values[f"image-{number:09d}"] = content.getvalue()
        values[f"label-{number:09d}"] = text.encode()
    return values


def section(root, **more):
    return {"type": "LMDBDataset", "dataset_root": str(root), "data_dir": "train", "characters": "abc", **more}


LOADER = {"batch_size": 2, "shuffle": False, "drop_remainder": False, "num_workers": 2}


def test_lmdb_folders_are_read_one_after_the_other(tmp_path, write):
    write(tmp_path / "train" / "one", samples("ab", "c"))
    write(tmp_path / "train" / "more" / "two", samples("cab"))
    data = datasets.build(section(tmp_path, max_text_len=4), LOADER)
    rows = list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    labels = [label.tolist() for _, batch in rows for label in batch]
    assert labels == [[3, 1, 2, 0], [1, 2, 0, 0], [3, 0, 0, 0]]
    assert [image.shape for image, _ in rows] == [(2, 1, 32, text_lines.WIDTH), (1, 1, 32, text_lines.WIDTH)]
    config = {"eval": {"dataset": section(tmp_path), "loader": LOADER}}
    shares = [datasets.held_out(config, rank, 2)[0].get_dataset_size() for rank in (0, 1)]
    assert shares == [1, 1]


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        ({"label-000000002": b"x"}, {}, "sample 2: the label x has x, which dataset.characters lacks"),
        ({"label-000000002": b"\xff"}, {}, "sample 2: label-000000002 is not UTF-8 text"),
        ({"num-samples": b"3"}, {}, "sample 3: label-000000003 is missing; the data is not whole"),
        ({"num-samples": b"many"}, {}, "num-samples should be a whole number, found: many"),
        ({}, {"max_text_len": 1}, "the label ab has 2 characters, more than dataset.max_text_len, 1"),
        ({}, {"data_dir": "test"}, "test: there is no file data.mdb in it, nor below it"),
    ],
)
def test_what_is_wrong_with_an_lmdb_is_named(tmp_path, write, change, more, said):
    write(tmp_path / "train", {**samples("ab", "c"), **change})
    config = {"train": {"dataset": section(tmp_path, **more), "loader": LOADER}}
    with pytest.raises(datasets.DataError) as caught:
        datasets.check(config, 1)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_without_the_package_a_line_says_how_to_get_it(tmp_path, monkeypatch):
    text_lmdb._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "lmdb", None)
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "data.mdb").write_bytes(b"")
    with pytest.raises(datasets.DataError, match="needs the package lmdb; install it: pip install lmdb$"):
        datasets.check({"train": {"dataset": section(tmp_path), "loader": LOADER}}, 1)
