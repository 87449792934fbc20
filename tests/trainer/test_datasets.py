"""Data sets: what is missing, not whole, of another format or too little is named; what is good is read as it is."""

import importlib
import json
import pathlib
import re
import struct

import pytest

from tools.config import modes
from tools.trainer import datasets

pytest.importorskip("PIL", reason="needs Pillow")
pytest.importorskip("numpy", reason="needs NumPy")

from tools import prepare_cifar10, prepare_text
from tools.trainer.datasets import cifar10, generator, text_boxes

PROJECT = pathlib.Path(__file__).resolve().parents[2]
LOADER = {"batch_size": 10, "shuffle": False, "drop_remainder": True, "num_workers": 1}


def check(section, batch_size=10, shards=2, **loader):
    """datasets.check of a config with that training data."""
    datasets.check({"train": {"dataset": section, "loader": {**LOADER, "batch_size": batch_size, **loader}}}, shards)


def refused(section, **how):
    """The message about the data."""
    with pytest.raises(datasets.DataError) as caught:
        check(section, **how)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def read(section, shard=0, shards=1, **loader):
    """The batches of a section, as NumPy arrays."""
    pytest.importorskip("mindspore", reason="needs MindSpore")
    data = datasets.build(section, {**LOADER, **loader}, modes.Part(shard=shard, shards=shards))
    return list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))


# ---- MNIST -------------------------------------------------------------------------------------------


def idx(folder, images=20, labels=20, magic=0x803, prefix="train", cut=0):
    """A section for two IDX files in `folder`, of the given lengths; label n is n % 10."""
    folder.mkdir(parents=True, exist_ok=True)
    pixels = b"".join(bytes([number]) * 784 for number in range(images))
    content = struct.pack(">4I", magic, images, 28, 28) + pixels
    (folder / f"{prefix}-images-idx3-ubyte").write_bytes(content[: len(content) - cut])
    classes = bytes(number % 10 for number in range(labels))
    (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, labels) + classes)
    return {"type": "mnist", "dataset_root": str(folder)}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"labels": 19}, "20 images but 19 labels"),
        ({"magic": 0x1F8B0800}, "should begin with the bytes 00 00 08 03, not 1f 8b 08 00; was it unpacked?"),
        ({"images": 19, "labels": 19}, "19 samples, 9 for each of 2 ranks: less than one batch of 10"),
        ({"cut": 100}, "has 15596 bytes, its header promises 15696 (20 samples)"),
    ],
)
def test_good_data_is_accepted_and_bad_idx_files_are_named(tmp_path, wrong, said):
    check(idx(tmp_path))
    assert said in refused(idx(tmp_path, **wrong))


def test_more_ranks_than_samples_are_refused_even_if_batches_need_not_be_full(tmp_path):
    section = idx(tmp_path)
    check(section, batch_size=100, shards=20, drop_remainder=False)
    assert "20 samples, 0 for each of 21 ranks" in refused(section, batch_size=100, shards=21, drop_remainder=False)


def test_a_folder_without_the_files_is_named_and_packed_files_too(tmp_path):
    section = {"type": "mnist", "dataset_root": str(tmp_path)}
    assert "has no file *-images-idx3-ubyte" in refused(section)
    (tmp_path / "train-images-idx3-ubyte.gz").touch()
    assert refused({**section, "usage": "train"}).endswith(
        "has no file train-images-idx3-ubyte, but train-images-idx3-ubyte.gz: unpack it with gunzip"
    )


@pytest.mark.thorough
@pytest.mark.parametrize("root", [".", "MNIST_Data", "MNIST_Data/train"])
def test_mnist_is_found_in_all_the_ways_in_which_tutorials_lay_it_out(tmp_path, root):
    in_one = root == "."
    idx(tmp_path if in_one else tmp_path / "MNIST_Data" / "train")
    idx(tmp_path if in_one else tmp_path / "MNIST_Data" / "test", images=12, labels=12, prefix="t10k")
    section = {"type": "mnist", "dataset_root": str(tmp_path / root)}
    check({**section, "usage": "train"}, shards=2)
    assert "12 samples, 6 for each" in refused({**section, "usage": "test"}, shards=2)
    assert len(read({**section, "usage": "train"})) == 2
    assert len(read({**section, "usage": "test"})) == 1


def with_held_out(folder, by_data_path=True):
    """datasets.check of a config whose data, to train on and held out, are in `folder`; (its line, the config)."""
    section = {"type": "mnist", "dataset_root": str(folder)}
    config = {"train": {"dataset": {**section, "usage": "train"}, "loader": LOADER}}
    config["eval"] = {"dataset": {**section, "usage": "test"}, "loader": LOADER}
    return datasets.check(config, 1, by_data_path), config


def test_a_data_path_of_the_tutorials_may_have_the_data_to_train_on_alone(tmp_path):
    folder = tmp_path / "MNIST_Data" / "train"
    idx(folder)
    (folder / "train-images-idx3-ubyte.gz").touch()
    for named in (folder, folder.parent):
        line, config = with_held_out(named)
        assert line == f"DATA_PATH {named} has no held-out data, so the accuracy is not measured"
        assert "eval" not in config
    with pytest.raises(datasets.DataError, match="has no file t10k-images-idx3-ubyte"):
        with_held_out(folder, by_data_path=False)
    (folder / "t10k-labels-idx1-ubyte").touch()
    with pytest.raises(datasets.DataError, match="has no file t10k-images-idx3-ubyte"):
        with_held_out(folder)
    (folder / "t10k-labels-idx1-ubyte").rename(folder / "t10k-images-idx3-ubyte.gz")
    with pytest.raises(datasets.DataError, match="unpack it with gunzip"):
        with_held_out(folder)
    idx(folder.parent / "test", prefix="t10k")
    line, config = with_held_out(folder)
    assert line is None
    assert "eval" in config


@pytest.mark.slow
def test_shards_are_disjoint_and_together_everything(tmp_path):
    section = {**idx(tmp_path), "image_size": 28}
    first, second = (read(section, shard, 2, shuffle=True)[0] for shard in (0, 1))
    seen = sorted(round(255 * float(image.max())) for images, _ in (first, second) for image in images)
    assert seen == list(range(20))
    assert first[0].shape == (10, 1, 28, 28)
    assert first[1].dtype == "int32"


# ---- CIFAR-10 ----------------------------------------------------------------------------------------


@pytest.fixture
def cifar(tmp_path):
    """A section for a generated set of 6 x 20 images."""
    assert prepare_cifar10.main([str(tmp_path), "--images", "20"]) == 0
    return {"type": "cifar10", "dataset_root": str(tmp_path), "usage": "train"}


def test_generated_images_are_in_the_original_format_and_of_ten_classes(cifar, tmp_path):
    import numpy as np

    check(cifar, batch_size=50)
    records = np.fromfile(tmp_path / "test_batch.bin", np.uint8).reshape(20, 3073)
    assert sorted(records[:, 0]) == sorted([*range(10)] * 2)
    assert len(np.unique(records[:, 1:], axis=0)) == 20
    images, labels = read({**cifar, "usage": "test", "augment": False})[0]
    assert list(labels) == list(records[:10, 0])
    plain = images * np.float32(cifar10.DEVIATION)[:, None, None] + np.float32(cifar10.MEAN)[:, None, None]
    assert np.abs(plain * 255 - records[:10, 1:].reshape(10, 3, 32, 32)).max() < 0.01


@pytest.mark.thorough
def test_files_of_ten_thousand_records_are_read_the_same_by_mindspore(tmp_path):
    import numpy as np

    pytest.importorskip("mindspore", reason="needs MindSpore")
    random = np.random.RandomState(1)
    records = random.randint(0, 256, (10000, 3073), np.uint8)
    records[:, 0] %= 10
    (tmp_path / "test_batch.bin").write_bytes(records.tobytes())
    small = tmp_path / "small"
    small.mkdir()
    (small / "test_batch.bin").write_bytes(records[:40].tobytes())
    section = {"type": "cifar10", "usage": "test", "image_size": 32}
    (images, labels), *_ = read({**section, "dataset_root": str(tmp_path)})
    (own, own_labels), *_ = read({**section, "dataset_root": str(small)})
    assert (labels == own_labels).all()
    assert (images == own).all()


@pytest.mark.thorough
def test_what_is_generated_is_read_by_mindspore_itself(tmp_path):
    import numpy as np

    cifar_10_dataset = pytest.importorskip("mindspore.dataset", reason="needs MindSpore").Cifar10Dataset
    assert prepare_cifar10.main([str(tmp_path)]) == 0
    for usage, images in (("train", 50000), ("test", 10000), ("all", 60000)):
        data = cifar_10_dataset(str(tmp_path), usage=usage, shuffle=False, num_parallel_workers=1)
        assert sum(1 for _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True)) == images
    image, label = next(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    record = np.fromfile(tmp_path / "data_batch_1.bin", np.uint8, cifar10.RECORD)
    assert label == record[0]
    assert (image == record[1:].reshape(3, 32, 32).transpose(1, 2, 0)).all()


def test_an_epoch_of_some_samples_has_as_many_of_all_ranks_together(cifar, tmp_path):
    import numpy as np

    some = {**cifar, "num_samples": 30, "image_size": 32}
    check(some, batch_size=15)
    assert "num_samples is 30, 15 for each of 2 ranks: less than one batch of 16" in refused(some, batch_size=16)
    assert "has 100 samples, 50 for each" in refused({**cifar, "num_samples": 1000}, batch_size=51)
    seen = [images for shard in (0, 1) for images, _ in read(some, shard, 2, batch_size=5, shuffle=True)]
    assert [len(images) for images in seen] == [5] * 6
    assert len(np.unique(np.concatenate(seen).reshape(30, -1), axis=0)) == 30
    assert len(read({**idx(tmp_path), "num_samples": 10}, batch_size=5)) == 2


def test_augmented_images_are_others_resized_ones_larger_and_workers_as_many_as_processors(cifar):
    plain = read({**cifar, "augment": False})[0][0]
    assert (plain != read({**cifar, "augment": True})[0][0]).any()
    assert read({**cifar, "image_size": 64})[0][0].shape == (10, 3, 64, 64)
    assert len(read(cifar, num_workers=1000)) == 10


def test_bad_cifar_files_are_named(cifar, tmp_path):
    whole = (tmp_path / "data_batch_3.bin").read_bytes()
    (tmp_path / "data_batch_3.bin").write_bytes(whole[:-1])
    assert "data_batch_3.bin has 61459 bytes, not a multiple of the 3073 bytes of a record" in refused(cifar)
    (tmp_path / "data_batch_3.bin").write_bytes(whole[:-3073])
    assert "data_batch_3.bin has 19 records, data_batch_1.bin has 20" in refused(cifar)
    (tmp_path / "data_batch_3.bin").write_bytes(b"\x0b" + whole[1:])
    assert "data_batch_3.bin: record 1 begins with the label 11, CIFAR-10 has 0 to 9" in refused(cifar)
    (tmp_path / "data_batch_3.bin").unlink()
    assert "has no file data_batch_3.bin; the download is not whole" in refused(cifar)


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ("data_batch_1", "this is CIFAR-10's Python version"),
        ("cifar-10-binary.tar.gz", "unpack cifar-10-binary.tar.gz"),
        ("x", "of CIFAR-10's binary version"),
    ],
)
def test_what_lies_there_instead_of_cifar_is_named(tmp_path, there, said):
    (tmp_path / there).touch()
    assert said in refused({"type": "cifar10", "dataset_root": str(tmp_path), "usage": "train"})


def test_the_folder_that_holds_the_original_folder_will_do(cifar, tmp_path):
    inner = tmp_path / "cifar-10-batches-bin"
    inner.mkdir()
    for path in tmp_path.glob("*.bin"):
        path.rename(inner / path.name)
    check(cifar)


# ---- text --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The folder of some rendered words and scenes."""
    folder = tmp_path_factory.mktemp("text")
    assert prepare_text.main([str(folder), "--words", "20", "--scenes", "20"]) == 0
    return folder


def lines(folder, **changes):
    """A section of the text lines in `folder`."""
    place = {"dataset_root": str(folder), "data_dir": "rec/train", "label_file": "rec/train/rec_gt.txt"}
    return {"type": "RecDataset", **place, "characters": prepare_text.CHARACTERS, **changes}


def boxes(folder, **changes):
    """A section of the text boxes in `folder`."""
    place = {"dataset_root": str(folder), "data_dir": "det/train", "label_file": "det/train/det_gt.txt"}
    return {"type": "DetDataset", **place, **changes}


def test_rendered_words_are_read_with_their_labels(text):
    check(lines(text))
    images, labels = read(lines(text, image_width=96))[0]
    assert images.shape == (10, 1, 32, 96)
    assert images.min() >= 0 and images.max() == 1
    first = (text / "rec" / "train" / "rec_gt.txt").read_text().splitlines()[0].split("\t")[1]
    assert "".join(prepare_text.CHARACTERS[number - 1] for number in labels[0] if number) == first


def test_rendered_scenes_are_read_with_maps_that_say_where_the_words_are(text):
    check(boxes(text))
    images, labels = read(boxes(text))[0]
    assert images.shape == (10, 3, 128, 128)
    label = (text / "det" / "train" / "det_gt.txt").read_text().splitlines()[0].split("\t")[1]
    for number, (x0, y0, x1, y1, _) in enumerate(text_boxes.boxes(label, ""), 1):
        numbered = labels[0][4][y0:y1, x0:x1]
        assert (numbered == number).all()
        assert 0 < labels[0][0][y0:y1, x0:x1].sum() < numbered.size  # its core is smaller


def test_an_unreadable_word_counts_neither_way():
    maps = text_boxes.maps([(10, 10, 50, 30, False)], 64)
    assert maps[0].sum() == 0
    assert (maps[1] == 0).sum() == 40 * 20
    assert set(maps[4].ravel()) == {0, -1}


@pytest.mark.parametrize(
    ("section", "line", "said"),
    [
        (lines, "a.png no tab", "expected an image's name, a tab and its label"),
        (lines, "a.png\tabc!", "has !, which dataset.characters lacks"),
        (lines, "a.png\t", "has no text"),
        (lines, "a.png\t" + "ab" * 17, "needs 34 columns, an image of 128 pixels has 32; raise dataset.image_width"),
        (lines, "a.png\tabc", "a.png is not there"),
        (lines, "", "is empty"),
        (boxes, "a.png\t[{]", "expected after the tab [{"),
        (boxes, 'a.png\t[{"transcription": "x"}]', "expected after the tab"),
        (boxes, 'a.png\t{"points": 1}', "expected after the tab"),
        (boxes, "a.png\t[]", "a.png is not there"),
    ],
)
def test_bad_label_files_are_named_with_their_line(tmp_path, section, line, said):
    section = section(tmp_path, data_dir=".", label_file="gt.txt")
    assert "gt.txt: no such file" in refused(section)
    (tmp_path / "gt.txt").write_text(line)
    message = refused(section)
    assert said in message
    assert "gt.txt:1: " in message or not line


def test_mindocr_labels_of_quadrilaterals_become_upright_boxes():
    label = json.dumps([{"transcription": "###", "points": [[5, 1], [9, 3], [8, 9], [2, 6]]}])
    assert text_boxes.boxes(label, "") == [(2, 1, 9, 9, False)]


def test_what_cannot_be_rendered_is_said_before_anything_is_written(tmp_path, capsys):
    for wrong in (["--words", "0"], ["--font", "nix.ttf"]):
        with pytest.raises(SystemExit) as ended:
            prepare_text.main([str(tmp_path / "out"), *wrong])
        assert ended.value.code == 2
        assert wrong[0] in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# ---- folders -----------------------------------------------------------------------------------------


def test_a_relative_folder_counts_from_here_then_from_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert datasets.locate("configs") == str(PROJECT / "configs")
    (tmp_path / "configs").mkdir()
    assert datasets.locate("configs") == str(tmp_path / "configs")


def test_a_missing_folder_and_a_file_in_its_place_are_named(tmp_path):
    (tmp_path / "file").touch()
    assert "no such folder" in refused({"type": "mnist", "dataset_root": str(tmp_path / "nix")})
    assert "is a file; name the folder" in refused({"type": "mnist", "dataset_root": str(tmp_path / "file")})


def test_a_folder_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may read everything
    section = {"type": "cifar10", "dataset_root": str(tmp_path)}
    assert f"the data in {tmp_path} cannot be read; check its permissions" in refused(section)


@pytest.mark.parametrize("command", ["prepare_digits", "prepare_cifar10", "prepare_text"])
def test_a_file_in_the_place_of_the_folder_is_named(tmp_path, capsys, command):
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(SystemExit):
        importlib.import_module(f"tools.{command}").main([str(path)])
    assert f"{path}: is not a folder; name a folder for the files" in capsys.readouterr().err
    assert path.read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["prepare_digits", "prepare_cifar10", "prepare_text"])
def test_a_folder_that_cannot_be_written_is_said_in_words(command, tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as end:
        importlib.import_module(f"tools.{command}").main([str(tmp_path / "file" / "data")])
    assert end.value.code == 2
    assert "cannot be written: Not a directory" in capsys.readouterr().err


# ---- interrupted ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "name", "few"),
    [
        ("DIGITS", "digits", []),
        ("CIFAR10", "cifar10", ["--images", "10"]),
        ("TEXT", "text", ["--words", "10", "--scenes", "10"]),
    ],
)
def test_the_file_that_make_looks_for_is_written_last(variable, name, few, tmp_path, monkeypatch):
    """Without it `make data` begins anew, so a set that has it is whole."""
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    target = re.search(rf"(?m)^{variable} := data/{name}/(.*)$", (PROJECT / "Makefile").read_text(encoding="utf-8"))[1]
    written = []
    monkeypatch.setattr(generator, "write_file", lambda path, content: written.append(path))
    assert importlib.import_module(f"tools.prepare_{name}").main([str(tmp_path), *few]) == 0
    assert len(written) > 3 and written[-1] == str(tmp_path / target)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    generator.write_file(str(tmp_path / "x"), b"old")
    with pytest.raises(TypeError):
        generator.write_file(str(tmp_path / "x"), None)
    assert (tmp_path / "x").read_bytes() == b"old"
