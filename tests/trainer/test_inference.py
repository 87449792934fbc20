"""What a trained network gives: measured, predicted on one rank and on two, and exported, from anyone's checkpoints."""

import os
import pathlib
import types

import pytest
import ranks
from checkpoint_files import cut_by_hand, saved
from suite.needs import Later, needs_packages

from tools import convert_ckpt, export, predict
from tools import eval as evaluation
from tools.trainer import inference
from tools.trainer.checkpoints import CheckpointError, strategies

ms, nn, np = Later("mindspore"), Later("mindspore.nn"), Later("numpy")
parallel, lenet = Later("tools.trainer.models.parallel"), Later("tools.trainer.models.lenet")

pytestmark = [needs_packages("mindspore", "sklearn"), pytest.mark.thorough, pytest.mark.trains]

CONFIGS = pathlib.Path(ranks.CONFIGS)
HYBRID, LENET = CONFIGS / "parallel" / "hybrid_digits.yaml", CONFIGS / "mnist" / "lenet5_digits.yaml"
SAMPLES = 7


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with held-out `data`, and the checkpoints `four` of the hybrid net, which was cut over 4 ranks."""
    ms.set_device("CPU")
    root = tmp_path_factory.mktemp("inference")
    data = ranks.digits(root / "data", SAMPLES)
    for name in ("images-idx3", "labels-idx1"):
        (data / f"train-{name}-ubyte").rename(data / f"t10k-{name}-ubyte")
    cut_by_hand(root / "four", 4)
    return root


def words(world, config, ckpt, *more):
    """A command's words for a config and a checkpoint in `world`."""
    settings = [f"eval.dataset.dataset_root={world / 'data'}", "eval.loader.batch_size=4", "system.device_target=CPU"]
    settings += ["model.hidden_size=24"] if config == HYBRID else []
    return ["-c", str(config), "--ckpt", str(ckpt), *more, "-o", *settings]


def wanted(world):
    """What the undivided net gives."""
    from tools.trainer import datasets

    section = {"type": "mnist", "dataset_root": str(world / "data"), "usage": "test"}
    loader = {"batch_size": SAMPLES, "shuffle": False, "drop_remainder": False, "num_workers": 1}
    images = next(datasets.build(section, loader).create_tuple_iterator())[0]
    return images, parallel.WholeNet(hidden_size=24, seed=3)(images).asnumpy()


def test_one_rank_predicts_from_the_slices_of_four(world, tmp_path, capsys):
    out = tmp_path / "one.npy"
    assert predict.main(words(world, HYBRID, world / "four", "--out", str(out))) == 0
    assert capsys.readouterr().out == f"{SAMPLES} predictions in {out}\n"
    found = np.load(out)
    assert found.dtype == np.float32 and list(tmp_path.iterdir()) == [out]
    np.testing.assert_allclose(found, wanted(world)[1], atol=1e-6)


def test_two_ranks_predict_from_the_slices_of_four(world, tmp_path):
    arguments = words(world, HYBRID, world / "four", "--out", "two.npy")
    arguments = arguments[2:]  # the launcher names the config
    program = ranks.PROJECT / "tools" / "predict.py"
    said = ranks.train(tmp_path, 2, HYBRID, arguments, trainer=program)
    assert f"{SAMPLES} predictions in two.npy" in said
    np.testing.assert_allclose(np.load(tmp_path / "two.npy"), wanted(world)[1], atol=1e-6)


def test_eval_measures_the_slices_of_four(world, capsys):
    assert evaluation.main(words(world, HYBRID, world / "four")) == 0
    assert capsys.readouterr().out.startswith("accuracy on held-out data: ")


def test_what_was_exported_gives_the_same_in_a_graph_cell(world, tmp_path, capsys):
    out = tmp_path / "net.mindir"
    assert export.main([str(out), *words(world, HYBRID, world / "four", "--batch_size", str(SAMPLES))]) == 0
    assert capsys.readouterr().out == f"{out}: ({SAMPLES}, 1, 32, 32) -> ({SAMPLES}, 10)\n"
    assert list(tmp_path.iterdir()) == [out]
    images, outputs = wanted(world)
    np.testing.assert_allclose(nn.GraphCell(ms.load(str(out)))(images).asnumpy(), outputs, atol=1e-6)


def refused(main, arguments, capsys, status=2):
    """The one line of a refusal."""
    capsys.readouterr()
    assert main(arguments) == status
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("main", [evaluation.main, predict.main, export.main], ids=["eval", "predict", "export"])
def test_what_cannot_be_used_is_refused_in_a_line(world, tmp_path, capsys, main):
    out = {predict.main: ["--out", str(tmp_path / "x.npy")], export.main: [str(tmp_path / "x.mindir")]}.get(main, [])
    for rank in range(2):
        saved(tmp_path / "lenet", rank, 2, net=lenet.LeNet5())
    (tmp_path / "torn").mkdir()
    (tmp_path / "file").write_bytes(b"garbage" * 9)
    for ckpt, said in (
        (tmp_path / "nix", "no such file or folder"),
        (tmp_path / "file", "cannot be read, it is damaged, cut off, or no checkpoint"),
        (tmp_path / "torn", "has no checkpoint of tools/train.py that is whole on all ranks"),
        (tmp_path / "lenet", "fc1.weight"),
        (world / "four" / "rank_0", "has checkpoints of one rank; name one of these files"),
    ):
        assert said in refused(main, [*out, *words(world, HYBRID, ckpt)], capsys)
    assert not any(path.suffix in (".npy", ".mindir") for path in tmp_path.iterdir())


def test_several_ranks_need_a_network_that_is_cut(world, capsys, monkeypatch):
    monkeypatch.setenv("RANK_SIZE", "2")
    out = ["--out", "x.npy"]
    line = refused(predict.main, words(world, LENET, world / "four", *out), capsys)
    assert "lenet5 in mode data_parallel is not cut into slices over the ranks; start predict.py without a" in line
    file = next((world / "four" / "rank_0").glob("*.ckpt"))
    assert "is a file, and every rank needs its slices" in refused(
        predict.main, words(world, HYBRID, file, *out), capsys
    )
    semi = CONFIGS / "parallel" / "semi_auto_digits.yaml"
    assert "[cpu-refuses]" in refused(predict.main, words(world, semi, world / "four", *out), capsys)


@pytest.mark.parametrize("whole", [0, 1])
def test_slices_that_mindspore_cuts_are_found_by_the_layouts_that_it_infers(tmp_path, monkeypatch, whole):
    """On CPU MindSpore infers no layouts: its part is played. This is rank 1 of 2; the slices are of 4, or whole."""
    cut_by_hand(tmp_path, 4, model="semi_auto_parallel_net", mode="semi_auto_parallel")
    if whole:
        words = [
            str(tmp_path),
            str(tmp_path / "new"),
            "--src_strategy",
            str(tmp_path / "strategy.json"),
            "--ranks",
            "8",
        ]
        assert convert_ckpt.main(words) == 0
    net = parallel.HybridParallelNet(hidden_size=24, seed=99, rank=1, ranks=2)
    layouts = strategies.layouts(net.cuts, 2)
    inferred = {
        name: [*layout, list(net.parameters_dict()[name].shape), 0, True, ""] for name, layout in layouts.items()
    }
    monkeypatch.setattr("mindspore.parallel._utils._get_global_rank", lambda: 1)
    monkeypatch.setattr("mindspore.parallel.checkpoint_transform.get_rank", lambda: 1)
    asked = []
    model = types.SimpleNamespace(infer_predict_layout=lambda images: asked.append(images) or inferred)
    config = {"model": {"name": "semi_auto_parallel_net"}}
    own = parallel.WholeNet(hidden_size=24, seed=99) if whole else net  # whole weights, before it compiles
    inference.load_slices(str(tmp_path / "new" if whole else tmp_path), config, model, own, 2, "images")
    wanted = parallel.WholeNet(hidden_size=24, seed=3)
    wanted = wanted if whole else parallel.HybridParallelNet(hidden_size=24, seed=3, rank=1, ranks=2)
    for name, parameter in wanted.parameters_dict().items():
        np.testing.assert_array_equal(own.parameters_dict()[name].asnumpy(), parameter.asnumpy(), err_msg=name)
    assert asked == ([] if whole else ["images"])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda root: (root / "strategy.json").unlink(), "strategy/rank_0.ckpt: no such file; name one that the"),
        (lambda root: (root / "strategy.json").write_text("{}"), "strategy.json is damaged, or no strategy file"),
        (lambda root: strategies.write_for(8, *[str(root / "strategy.json")] * 2), "is for 8 ranks, but there are 4"),
        (lambda root: (root / "rank_2").rename(root / "rank_x"), "that is whole on all ranks"),
    ],
)
def test_slices_that_cannot_be_loaded_are_refused(tmp_path, spoil, said):
    cut_by_hand(tmp_path, 4)
    spoil(tmp_path)
    net = parallel.HybridParallelNet(hidden_size=24, rank=0, ranks=2)
    with pytest.raises(CheckpointError, match=said):
        inference.load_slices(str(tmp_path), {"model": {"name": "hybrid_parallel_net"}}, None, net, 2, None)


def test_slices_of_another_width_are_refused(tmp_path):
    cut_by_hand(tmp_path, 4)
    net = parallel.HybridParallelNet(hidden_size=48, rank=0, ranks=2)
    with pytest.raises(CheckpointError, match=r"fc1.weight has the shape \(1024, 24\), but here \(1024, 48\)"):
        inference.load_slices(str(tmp_path), {"model": {"name": "hybrid_parallel_net"}}, None, net, 2, None)


def test_a_folder_that_is_not_there_is_said_before_anything_runs(world, tmp_path, capsys):
    out = str(tmp_path / "nix" / "x.npy")
    line = refused(predict.main, words(world, HYBRID, world / "four", "--out", out), capsys)
    assert "nix/x.npy cannot be written: no folder" in line


@pytest.mark.parametrize("main", [predict.main, export.main], ids=["predict", "export"])
def test_a_full_disk_is_said_and_leaves_nothing(world, tmp_path, tmp_path_factory, capsys, main):
    out = tmp_path / ("x.npy" if main is predict.main else "x.mindir")
    named = ["--out", str(out)] if main is predict.main else [str(out)]
    file = saved(tmp_path_factory.mktemp("lenet"), net=lenet.LeNet5())
    with ranks.no_file_longer_than(100):
        line = refused(main, [*named, *words(world, LENET, file)], capsys)
        assert f"{out} cannot be written: File too large" in line and os.listdir(tmp_path) == []
        line = refused(main, [*named, *words(world, HYBRID, world / "four")], capsys)
        assert "/four cannot be merged: " in line and "name another folder in TMPDIR" in line
