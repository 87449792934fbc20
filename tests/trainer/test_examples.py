"""examples/: what each file promises, as far as MindSpore's CPU back end goes.

Data parallel and cuts by hand really train here, with two ranks, started as the tutorial starts them.  What MindSpore
cuts (auto and semi-auto parallel, pipelines) is run whole, compared with NumPy, and compiled until MindSpore refuses.
"""

import ast
import importlib
import os
import re
import runpy
import shutil
import sys

import pytest
import ranks
from suite.needs import Later, need, needs, needs_packages

from hccl_tools.build import merging
from hccl_tools.check import verdict
from hccl_tools.machine import hccn
from hccl_tools.table import rank_table
from tools.logs import known_failures
from tools.trainer.checkpoints import strategies

EXAMPLES = ranks.PROJECT / "examples"
TRAINING, GPU, PARALLEL = (EXAMPLES / f"distributed_{name}" for name in ("training", "training_gpu", "data_parallel"))
FILES = sorted(EXAMPLES.rglob("*.py"))
SERVERS = ("192.0.2.1", "192.0.2.2")
OTHERS = {2: "rank_table_8pcs.json (devices 0-7)", 8: "rank_table_2pcs.json (devices 0,1)"}
CONF = ("--hccn_conf", ranks.PROJECT / "configs" / "demo_hccn.conf")
STUB = ranks.PROJECT / "tests" / "fixtures" / "stub_mindspore"
AT_ONCE = {"PYTHONPATH": str(ranks.PROJECT / "tests" / "fixtures" / "ends_at_once")}

launch = ranks.typed
ms, np = Later("mindspore"), Later("numpy")
nn = Later("mindspore.nn")


def mindspore(test):
    """The marks of a test that runs MindSpore."""
    for mark in (needs_packages("mindspore", "numpy", "sklearn"), pytest.mark.thorough, pytest.mark.trains):
        test = mark(test)
    return test


@pytest.fixture
def example(monkeypatch):
    """example("checkpoints"): the module of a file in examples/."""

    def load(name, folder=TRAINING):
        monkeypatch.syspath_prepend(str(folder))
        return importlib.import_module(name)

    yield load
    for name in {path.stem for path in FILES}:
        sys.modules.pop(name, None)


@pytest.fixture
def undivided(tmp_path, monkeypatch):
    """MindSpore on this machine's processors, with no parallel mode before and after the test."""
    monkeypatch.chdir(tmp_path)  # MindSpore writes files where a net does not compile
    ms.set_device("CPU")
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.reset_auto_parallel_context()
    yield
    ms.reset_auto_parallel_context()
    ms.set_context(mode=ms.GRAPH_MODE)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """320 digits in MNIST's format."""
    return ranks.digits(tmp_path_factory.mktemp("mnist") / "train", 320)


@pytest.fixture(scope="module")
def cifar(tmp_path_factory):
    """One file of CIFAR-10 with 10,000 images, as MindSpore wants it: 64 are noise, and the others not on the disk."""
    path = tmp_path_factory.mktemp("cifar") / "data_batch_1.bin"
    record = 1 + 32 * 32 * 3
    path.write_bytes(b"".join(bytes([n % 10]) + np.random.default_rng(n).bytes(record - 1) for n in range(64)))
    os.truncate(path, 10_000 * record)
    return path.parent


def losses(text):
    return [float(number) for number in re.findall(r"loss is ([\d.]+)", text)]


# ---- the files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_an_example_needs_nothing_of_this_project(path):
    text = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    beside = {other.stem for other in path.parent.glob("*.py")}
    assert {name.partition(".")[0] for name in named} <= {"mindspore", "numpy", "os", "sys"} | beside


@pytest.mark.parametrize("generation", [None, "910A", "A2", "A3"])
@pytest.mark.parametrize("cards", [2, 8, 16])
def test_the_rank_tables_are_good(cards, generation):
    path = TRAINING / f"rank_table_{cards}pcs.json"
    table, problems = verdict.check_file(str(path), generation)
    assert problems == [] and verdict.path_problem(str(path)) is None
    assert sum(len(server.devices) for server in rank_table.servers(table)) == cards


def test_the_rank_tables_are_those_that_the_builder_makes():
    first, _ = hccn.read_conf(str(ranks.PROJECT / "configs" / "demo_hccn.conf"))
    second = {device: re.sub(r"\.10(\d)$", r".11\1", ip) for device, ip in first.items()}

    def built(addresses, cards=8, server="127.0.0.1"):
        return rank_table.build(sorted(addresses.items())[:cards], server)

    both = [merging.Named(name=ip, table=built(cards, server=ip)) for ip, cards in zip(SERVERS, (first, second))]
    for cards, table in {2: built(first, 2), 8: built(first), 16: merging.merge(both)}.items():
        assert (TRAINING / f"rank_table_{cards}pcs.json").read_text() == rank_table.dump(table)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 8])
def test_the_tutorials_command_finds_the_table_beside_it(tmp_path, count):
    shutil.copytree(EXAMPLES, tmp_path / "examples", symlinks=True)
    (tmp_path / "scripts").symlink_to(ranks.PROJECT / "scripts")
    there = tmp_path / "examples" / "distributed_training"
    options = ["--dry_run", "--no_check", *CONF, ".", count]
    code, out, err = launch(there, "run.sh", *options, PYTHONPATH=str(STUB))
    assert code == 0, err
    assert err.splitlines() == [
        f"run.sh: rank tables not used: rank_table_16pcs.json (2 servers), {OTHERS[count]}; "
        "--rank_table FILE selects one, or reports what is wrong with it",
        f"run.sh: rank table: rank_table_{count}pcs.json, found in this folder",
    ]
    assert f"RANK_TABLE_FILE={there}/rank_table_{count}pcs.json " in out
    assert f"-m pytest -s {there}/resnet50_distributed_training.py >" in out
    code, out, err = launch(tmp_path, there / "run.sh", *options, PYTHONPATH=str(STUB))
    assert code == 0 and f"rank table: {there}/rank_table_{count}pcs.json, found next to the program" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "words", "program"),
    [
        (TRAINING / "run_pipeline.sh", [*CONF, ".", "Ascend"], "resnet50_distributed_training_pipeline.py"),
        (TRAINING / "run_dataset_slice.sh", [*CONF, ".", "8"], "resnet50_distributed_training_dataset_slice.py"),
        (GPU / "run_gpu.sh", ["."], "resnet50_distributed_training_gpu.py"),
        (PARALLEL / "run.sh", [], "net.py"),
        (PARALLEL / "run_mpirun_1.sh", ["localhost:2"], "net.py"),
        (PARALLEL / "run_mpirun_2.sh", ["hosts"], "net.py"),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_the_scripts_of_the_tutorials_start_the_file_beside_them(tmp_path, script, words, program):
    if PARALLEL in script.parents or GPU in script.parents:
        need("mpirun")
    (tmp_path / "hosts").write_text("localhost slots=2\n")
    code, out, err = launch(tmp_path, script, "--dry_run", "--no_check", *words, PYTHONPATH=str(STUB))
    assert code == 0, err
    assert f"{script.parent}/{program}" in out
    if script.parent == PARALLEL:
        assert "DATA_PATH" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "place"),
    [
        (("run.sh", "--device_target", "CPU", ".", 2), r"resnet50_distributed_training.py:\d+: auto_parallel"),
        (("run_pipeline.sh", ".", "CPU"), r"resnet50_distributed_training_pipeline.py:\d+: semi_auto_parallel"),
        (
            ("run_dataset_slice.sh", "--device_target", "CPU", ".", 2),
            r"resnet50_distributed_training_dataset_slice.py:\d+: auto_parallel",
        ),
        (
            ("../../scripts/run.sh", "--device_target", "CPU", ".", 2, TRAINING / "semi_auto_parallel.py"),
            r"semi_auto_parallel.py:\d+: semi_auto_parallel",
        ),
    ],
)
def test_what_mindspore_does_not_cut_on_cpu_is_refused_in_one_line(tmp_path, command, place):
    code, out, err = launch(tmp_path, TRAINING / command[0], *command[1:], PYTHONPATH=str(STUB))
    assert code == 78 and out == "" and err.count("\n") == 1 and os.listdir(tmp_path) == []
    assert re.search(rf"/{place} does not run on CPU: MindSpore's CPU back end refuses it", err)
    assert err.endswith("--no_check starts the program all the same\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "words", "missing"),
    [("run.sh", ["."], "RANK_SIZE"), ("run_cluster.sh", [".", "rank_table.json", 16], "RANK_START")],
)
def test_a_forgotten_argument_is_named_and_not_the_data_in_its_place(tmp_path, script, words, missing):
    code, out, err = launch(tmp_path, TRAINING / script, *words, PYTHONPATH=str(STUB))
    assert code == 2 and out == "" and f"{script}: {missing} is missing; see: " in err


# ---- what MindSpore computes -----------------------------------------------------------------------------


def by_numpy(logits, labels):
    """The mean cross entropy."""
    shifted = logits - logits.max(1, keepdims=True)
    return (np.log(np.exp(shifted).sum(1)) - shifted[np.arange(len(labels)), labels]).mean()


@mindspore
def test_the_expanded_loss_is_numpys(example, undivided):
    draw = np.random.default_rng(3)
    logits, labels = draw.normal(0, 30, (6, 10)).astype(np.float32), draw.integers(0, 10, 6).astype(np.int32)
    loss = example("resnet50_distributed_training").SoftmaxCrossEntropyExpand
    rows = np.eye(10, dtype=np.float32)[labels]
    for found in (loss(sparse=True)(ms.Tensor(logits), ms.Tensor(labels)), loss()(ms.Tensor(logits), ms.Tensor(rows))):
        assert abs(float(found) - by_numpy(logits, labels)) < 1e-4


@mindspore
def test_each_rank_reads_its_part_of_cifar_10(example, cifar):
    module = example("resnet50_distributed_training")
    parts = [module.create_dataset(str(cifar), batch_size=100, ranks=2, rank=rank, size=40) for rank in range(2)]
    images, labels = next(parts[0].create_tuple_iterator(output_numpy=True))
    assert images.shape == (100, 3, 40, 40) and images.dtype == np.float32 and labels.dtype == np.int32
    counted = sum(np.bincount(labels, minlength=10) for part in parts for _, labels in read(part))
    assert [part.get_dataset_size() for part in parts] == [50, 50]
    assert sum(counted) == 10_000 and min(counted[1:]) >= 6  # the labels of the first 64 images are 0 to 9, in turn


def read(data):
    return data.create_tuple_iterator(num_epochs=1, output_numpy=True)


@mindspore
def test_the_strips_of_all_ranks_are_the_images(example, cifar):
    create = example("resnet50_distributed_training_dataset_slice").create_dataset
    (whole, labels), *strips = (
        next(read(create(str(cifar), batch_size=8, ranks=count, rank=rank, size=32)))
        for count, rank in ((1, 0), (4, 0), (4, 1), (4, 2), (4, 3))
    )
    assert all(strip.shape == (8, 3, 32, 8) and (own == labels).all() for strip, own in strips)
    np.testing.assert_array_equal(np.concatenate([strip for strip, _ in strips], 3), whole)


@mindspore
def test_resnet50_is_resnet50(example, undivided):
    resnet = example("resnet")
    assert (
        sum(weight.size for weight in resnet.resnet50(1000).trainable_params()) == 25_557_032
    )  # as in the paper's form
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net = resnet.ResNet((1, 1, 1, 1), 10)
    assert net(ms.ops.zeros((2, 3, 32, 32), ms.float32)).shape == (2, 10)


@mindspore
def test_the_loss_of_micro_batches_is_that_of_the_batch(example, undivided):
    module = example("resnet50_distributed_training_pipeline")
    draw = np.random.default_rng(5)
    images, labels = draw.random((8, 6), np.float32), draw.integers(0, 3, 8).astype(np.int32)
    net, loss = nn.Dense(6, 3), module.SoftmaxCrossEntropyExpand(sparse=True)
    cell = module.in_micro_batches(net, loss)
    logits = images @ net.weight.asnumpy().T + net.bias.asnumpy()
    assert abs(float(cell(ms.Tensor(images), ms.Tensor(labels))) - by_numpy(logits, labels)) < 1e-5


@mindspore
def test_the_layers_are_dealt_out_to_stages_in_order(example, undivided):
    module = example("resnet50_distributed_training_pipeline")
    net = module.in_stages(example("resnet").ResNet((1, 1, 1, 1), 10))
    assert [cell.pipeline_stage for cell in (net.stem, *net.blocks, net.classify)] == [0, 0, 0, 1, 1, 1]


@mindspore
def test_the_net_with_shard_is_numpys_and_says_how_it_is_cut(example, undivided):
    module = example("semi_auto_parallel")
    images = np.random.default_rng(6).random((4, 1, 28, 28), np.float32)
    weights = list(module.first_weights().values())
    hidden = np.maximum(images.reshape(4, -1) @ weights[0], 0)
    expected = np.maximum(hidden @ weights[1], 0) @ weights[2]
    net = module.Net(ranks=4)
    np.testing.assert_allclose(net(ms.Tensor(images)).asnumpy(), expected, atol=1e-4)
    assert net.layer1.matmul.attrs["in_strategy"] == ((1, 1), (1, 4))
    assert net.layer2.matmul.attrs["in_strategy"] == ((1, 4), (4, 1))


# ---- what MindSpore cuts: run whole, then compiled until it refuses ----------------------------------------


@pytest.fixture
def alone(monkeypatch):
    """alone(module): its training has one rank, a small net and a few images; returns the settings that it makes."""

    def prepare(module, images):
        class Small(nn.Cell):
            def __init__(self):
                super().__init__()
                self.stem, self.classify = nn.Identity(), nn.Dense(3, 10)
                self.blocks = nn.SequentialCell(nn.Identity(), nn.Identity())

            def construct(self, x):
                return self.classify(self.blocks(self.stem(x)).mean((2, 3)))

        asked = {}
        real = module.create_dataset
        monkeypatch.setenv("DATA_PATH", str(images))
        monkeypatch.setattr(module, "create_dataset", lambda path, **part: real(path, size=32, **part).take(2))
        monkeypatch.setattr(module, "resnet50", Small)
        monkeypatch.setattr(module, "get_group_size", lambda: 2)
        monkeypatch.setattr(module, "get_rank", lambda: 1)
        for name in ("init", "release"):
            monkeypatch.setattr(module, name, lambda *_: None)
        monkeypatch.setattr(module.ms, "set_auto_parallel_context", lambda **settings: asked.update(settings))
        return asked

    return prepare


WHOLE = {  # the parallel settings that each training makes, as the second of two ranks
    "": {"parallel_mode": "auto_parallel", "gradients_mean": True},
    "_pipeline": {"parallel_mode": "semi_auto_parallel", "pipeline_stages": 2, "gradients_mean": True},
    "_dataset_slice": {
        "parallel_mode": "auto_parallel",
        "dataset_strategy": ((1, 1, 1, 2), (1,)),
        "gradients_mean": True,
    },
}


@mindspore
@pytest.mark.parametrize("name", WHOLE)
def test_a_training_that_mindspore_would_cut_is_run_whole(example, undivided, alone, cifar, capfd, name):
    module = example(f"resnet50_distributed_training{name}")
    (test,) = (
        value for key, value in vars(module).items() if key.startswith("test_") and value.__module__ == module.__name__
    )
    settings = alone(module, cifar)
    test(epochs=2)
    assert settings == WHOLE[name]
    assert len(losses(capfd.readouterr().out)) > 1


def explained(message):
    """The codes of the known failures that a message of MindSpore has."""
    entries, _ = known_failures.load({})
    return [entry.code for entry in entries if any(pattern.search(message) for pattern in entry.patterns)]


@pytest.fixture
def saved(example, undivided, tmp_path, monkeypatch, digits):
    """saved(mode): rank 0 of two runs the mode of checkpoints.py; in the place of the training all weights change.

    Both ranks then save what they would have, with integrated_save whole nets, else their parts.  Returns the answers
    of the net before and after, and the parallel settings.
    """

    def run(mode):
        module, hybrid = example("checkpoints"), example("hybrid_parallel")
        asked = {}
        monkeypatch.setattr(module.ms, "set_auto_parallel_context", lambda **settings: asked.update(settings))
        monkeypatch.setattr(module, "FOLDER", str(tmp_path))
        monkeypatch.setattr(module, "DATA", str(digits))
        monkeypatch.setattr(module, "wait_for_all", lambda: None)

        def learn(net, data, epochs, callbacks):
            whole = {weight.name: weight.asnumpy() + 0.01 for weight in net.trainable_params()}
            for weight in net.trainable_params():
                weight.set_data(ms.Tensor(whole[weight.name]))
            axes = {} if callbacks[0]._config.integrated_save else hybrid.CUT
            for rank in (0, 1):
                own = {n: np.split(w, 2, axes[n])[rank] if n in axes else w for n, w in whole.items()}
                (tmp_path / f"rank_{rank}").mkdir(exist_ok=True)
                parts = [{"name": name, "data": ms.Tensor(weight)} for name, weight in own.items()]
                ms.save_checkpoint(parts, str(tmp_path / f"rank_{rank}" / "net-1_10.ckpt"))
            cuts = {name: (weight.shape, axes.get(name)) for name, weight in whole.items()}
            strategies.write(str(tmp_path / "strategy_0.json"), cuts, 2)

        monkeypatch.setattr(module, "train", learn)
        before, loaded = module.MODES[mode](0, 2)
        return before, module.answers(loaded), asked

    return run


@mindspore
@pytest.mark.parametrize("mode", ["auto_parallel", "semi_auto_parallel"])
def test_what_mindspore_would_cut_and_save_is_loaded_whole(saved, tmp_path, mode):
    before, after, settings = saved(mode)
    np.testing.assert_allclose(after, before, atol=1e-5)
    strategy = {"strategy_ckpt_config": {"save_file": str(tmp_path / "strategy_0.json")}}
    expected = {"parallel_mode": mode, "dataset_strategy": "full_batch", "gradients_mean": True}
    assert settings == {**expected, **(strategy if mode == "semi_auto_parallel" else {})}


@mindspore
@pytest.mark.parametrize("mode", ["semi_auto_parallel", "auto_parallel"])
def test_what_mindspore_refuses_to_cut_on_cpu_one_line_explains(example, undivided, mode):
    module = example("semi_auto_parallel")
    net = module.Net(ranks=2)
    ms.set_auto_parallel_context(parallel_mode=mode, device_num=2, global_rank=0)
    with pytest.raises(RuntimeError) as refused:
        net(ms.ops.zeros((4, 1, 28, 28), ms.float32))
    assert "Invalid communication backend: CPU" in str(refused.value)
    assert explained(str(refused.value)) == ["invalid-backend"]


@mindspore
def test_without_gpus_the_gpu_training_is_refused(example, undivided):
    module = example("resnet50_distributed_training_gpu", GPU)
    with pytest.raises(RuntimeError, match="Unsupported device target GPU") as refused:
        module.test_train_cifar_gpu()
    assert "no-gpu-software" in explained(str(refused.value))


# ---- two ranks -----------------------------------------------------------------------------------------------


@pytest.fixture
def trained(undivided, example, digits):
    """trained(batch): (losses, weights) of the net of semi_auto_parallel.py after one epoch in this process."""

    def learn(batch, capfd):
        module = example("semi_auto_parallel")
        net = module.Net()
        capfd.readouterr()
        module.train(net, module.create_dataset(str(digits), batch), 1)
        return losses(capfd.readouterr().out), {p.name: p.asnumpy() for p in net.trainable_params()}

    return learn


def two_ranks(folder, data, program, *words):
    """Output of a launch of two ranks on this machine's processors, started with the script of the tutorials."""
    script = ranks.PROJECT / "scripts" / "run.sh"
    fixed = ("--device_target", "CPU", "--import_once")
    code, out, err = launch(folder, script, *fixed, data, 2, TRAINING / program, *words, **AT_ONCE)
    assert code == 0, err + out
    return out


@mindspore
def test_one_process_learns_on_the_processors(tmp_path):
    for name, file in (("train", "train"), ("test", "t10k")):
        ranks.digits(tmp_path / "MNIST_Data" / name, 640)
        for path in (tmp_path / "MNIST_Data" / name).iterdir():
            path.rename(path.with_name(path.name.replace("train", file)))
    code, out, err = launch(tmp_path, "-c", f"python3 {PARALLEL / 'train-cpu.py'}", **AT_ONCE)
    assert code == 0, err
    assert float(re.search(r"accuracy: ([\d.]+)", out)[1]) > 0.4


@mindspore
def test_two_ranks_with_half_of_the_data_each_learn_as_one_with_all(tmp_path, trained, digits, capfd):
    out = two_ranks(tmp_path, digits, "checkpoints.py", "data_parallel")
    assert "data_parallel: the answers of the loaded net differ by 0.0000" in out
    _, expected = trained(64, capfd)
    for rank in (0, 1):
        files = sorted((tmp_path / "logs/latest/ckpt" / f"rank_{rank}").glob("*.ckpt"))
        found = ms.load_checkpoint(str(files[-1]))
        for name, weight in expected.items():
            np.testing.assert_allclose(found[name].asnumpy(), weight, atol=1e-5, err_msg=name)


@mindspore
def test_a_net_cut_by_hand_over_two_ranks_learns_as_the_whole_one(tmp_path, trained, digits, capfd):
    out = two_ranks(tmp_path, digits, "checkpoints.py", "hybrid_parallel")
    expected, _ = trained(32, capfd)
    np.testing.assert_allclose(losses(out), expected, atol=1e-4)
    assert "hybrid_parallel: the answers of the loaded net differ by 0.0000" in out
    files = (tmp_path / "logs/latest/ckpt/rank_1").glob("*.ckpt")
    assert ms.load_checkpoint(str(next(files)))["layer1.weight"].shape == (784, 64)


@mindspore
@pytest.mark.parametrize("mode", ["auto_parallel", "semi_auto_parallel"])
def test_the_example_of_four_modes_says_which_two_do_not_run_on_the_processors(example, undivided, monkeypatch, mode):
    program = TRAINING / "checkpoints.py"
    monkeypatch.syspath_prepend(str(TRAINING))
    monkeypatch.setattr(sys, "argv", [str(program), mode])
    with pytest.raises(SystemExit, match=f"^{mode}: MindSpore's CPU back end cuts no net; it needs Ascend or GPU$"):
        runpy.run_path(str(program), run_name="__main__")


@mindspore
@needs("mpirun")
def test_the_net_of_the_mpirun_tutorial_learns_with_two_ranks(tmp_path, digits):
    script = PARALLEL / "run.sh"
    options = ("--device_target", "CPU", "--import_once", "-n", 2)
    code, out, err = launch(tmp_path, script, *options, DATA_PATH=f"{digits}/", **AT_ONCE)
    assert code == 0, err + out
    assert losses(out)[-1] < losses(out)[0] / 2
