"""What the parallel modes ask of a config, and which part of the data each rank gets."""

import os
import subprocess
import sys

import pytest
import ranks
from suite.cases import for_each

from tools.config import config_file as configs
from tools.config import modes
from tools.trainer import datasets

CONFIGS = ranks.CONFIGS


def filled(path, *assignments):
    config = configs.load(str(CONFIGS / path))
    config.override(assignments)
    assert config.problems() == []
    return config.filled


def texts(config, count, target="CPU"):
    return [f"{problem.pointer}: {problem.text}; {problem.remedy}" for problem in modes.problems(config, count, target)]


@pytest.mark.parametrize("path", ["semi_auto", "auto", "pipeline", "slices"])
def test_what_the_cpu_back_end_refuses_is_refused_with_its_words_and_a_way_out(path):
    config = filled(f"parallel/{path}_digits.yaml")
    (text,) = texts(config, 4)
    assert text.startswith("/parallel/mode: ") and '"Invalid backend: CPU"' in text and "hybrid_parallel" in text
    assert texts(config, 4, "Ascend") == [] and texts(config, 4, "GPU") == []


@pytest.mark.slow
@pytest.mark.parametrize("path", ["semi_auto", "auto", "pipeline", "slices"])
def test_a_launch_on_cpu_is_refused_before_any_rank_starts(tmp_path, path):
    config = CONFIGS / "parallel" / f"{path}_digits.yaml"
    command = ["bash", str(ranks.PROJECT / "scripts" / "ascend4p.sh"), "--device_target", "CPU", str(config)]
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 78 and os.listdir(tmp_path) == []
    assert done.stderr.count("\n") == 1 and "[cpu-refuses]" in done.stderr
    assert f"{path}_digits.yaml:" in done.stderr  # the line of the file


@pytest.mark.parametrize("path", ["semi_auto", "auto", "pipeline", "slices"])
def test_in_pynative_mode_mindspore_cuts_nothing_which_one_line_says(path):
    config = filled(f"parallel/{path}_digits.yaml", "system.mode=1")
    (text,) = texts(config, 4, "Ascend")
    assert text.startswith("/system/mode: MindSpore cuts a graph") and "write 0, or set parallel.mode" in text
    (text,) = texts(config, 4, "CPU")
    assert text.startswith("/parallel/mode: ") and "does not run on CPU" in text
    assert texts(filled("parallel/hybrid_digits.yaml", "system.mode=1"), 4, "Ascend") == []


@pytest.mark.parametrize(("path", "count"), [("hybrid", 2), ("hybrid", 4), ("hybrid", 8), ("hand_pipeline", 2)])
def test_what_is_cut_by_hand_runs_everywhere(path, count):
    config = filled(f"parallel/{path}_digits.yaml")
    assert texts(config, count) == texts(config, count, "Ascend") == []


@for_each(
    "path, assignments, count, said",
    [
        ("mnist/lenet5_digits.yaml", ["parallel.mode=hybrid_parallel"], 2, "/model/name: network lenet5 has no hand-"),
        ("mnist/lenet5_digits.yaml", ["parallel.pipeline_stages=2"], 2, "/parallel/pipeline_stages: "),
        ("mnist/lenet5_digits.yaml", ["parallel.search_mode=dynamic_programming"], 2, "/parallel/search_mode: "),
        ("mnist/lenet5_digits.yaml", ["parallel.dataset_strategy=full_batch"], 2, "/parallel/dataset_strategy: "),
        (
            "mnist/lenet5_digits.yaml",
            ["train.gradient_accumulation_steps=5"],
            2,
            "a batch of 32 cannot be divided into 5",
        ),
        ("mnist/lenet5_digits.yaml", ["model.name=hand_pipeline_net"], 2, "set parallel.mode to hybrid_parallel"),
        ("parallel/hybrid_digits.yaml", ["model.hidden_size=6"], 4, "/model/hidden_size: 6 cannot be cut into 4"),
        ("parallel/hybrid_digits.yaml", ["parallel.gradients_mean=False"], 2, "counts each sample once per rank"),
        ("parallel/hand_pipeline_digits.yaml", [], 4, "has two stages and this job 4 ranks; start 2 ranks"),
        (
            "parallel/hand_pipeline_digits.yaml",
            ["train.gradient_accumulation_steps=2"],
            2,
            "already divides its batches",
        ),
        (
            "parallel/pipeline_digits.yaml",
            ["parallel.pipeline_stages=3"],
            4,
            "4 ranks cannot be divided into 3 equal stages",
        ),
        ("parallel/pipeline_digits.yaml", ["parallel.pipeline_stages=4"], 4, "pipeline_net can be cut into 3 parts"),
        ("parallel/pipeline_digits.yaml", ["parallel.micro_batches=1"], 4, "keep only 1 of 2 stages busy"),
        ("parallel/pipeline_digits.yaml", ["parallel.micro_batches=5"], 4, "a batch of 32 cannot be divided into 5"),
        ("parallel/pipeline_digits.yaml", ["model.name=lenet5"], 4, "lenet5 cannot be combined with pipeline_stages 2"),
        ("parallel/slices_digits.yaml", [], 8, "images are cut into 1x1x1x4 parts, for 8 ranks"),
        ("parallel/slices_digits.yaml", ["parallel.dataset_strategy=[[4, 1], [1]]"], 4, "images have 4 axes"),
        ("parallel/slices_digits.yaml", ["parallel.dataset_strategy=[[2,1,1,2],[1]]"], 4, "write the same number in"),
        ("parallel/slices_digits.yaml", ["parallel.dataset_strategy=ful_batch"], 4, "ful_batch is not known here"),
    ],
)
def test_what_does_not_go_together_is_named(path, assignments, count, said):
    found = texts(filled(path, *assignments), count, "Ascend")
    assert any(said in text for text in found), found


def test_alone_the_parallel_mode_has_no_say():
    assert texts(filled("parallel/semi_auto_digits.yaml", "system.distribute=False"), 1) == []


def test_data_parallel_deals_the_samples_out():
    config = filled("mnist/lenet5_digits.yaml")
    assert [modes.data_part(config, rank, 4) for rank in range(4)] == [modes.Part(shard=s, shards=4) for s in range(4)]


@pytest.mark.parametrize("path", ["hybrid", "hand_pipeline", "semi_auto"])
def test_ranks_that_share_the_samples_read_all_of_them(path):
    config = filled(f"parallel/{path}_digits.yaml")
    assert {modes.data_part(config, rank, 2) for rank in range(2)} == {modes.Part()}


def test_each_stage_of_a_pipeline_reads_the_same_shards():
    config = filled("parallel/pipeline_digits.yaml", "parallel.dataset_strategy=data_parallel")
    assert [modes.data_part(config, rank, 4).shard for rank in range(4)] == [0, 1, 0, 1]
    assert modes.data_part(config, 0, 4).shards == 2


@pytest.mark.thorough
def test_the_patches_of_all_ranks_are_the_images(tmp_path):
    """Two shards by 2 x 2 patches on 8 ranks, read by MindSpore, put together again."""
    pytest.importorskip("mindspore", reason="needs MindSpore")
    np = pytest.importorskip("numpy", reason="needs NumPy")
    data = ranks.digits(tmp_path / "data", 8)
    strategy = "parallel.dataset_strategy=[[2, 1, 2, 2], [2]]"
    config = filled("parallel/slices_digits.yaml", strategy, f"train.dataset.dataset_root={data}")
    loader = {**config["train"]["loader"], "batch_size": 4, "shuffle": False}

    def read(part):
        ((images, labels),) = datasets.build(config["train"]["dataset"], loader, part).create_tuple_iterator(
            num_epochs=1, output_numpy=True
        )
        return images, labels

    assert modes.problems(config, 8, "Ascend") == []
    parts = [read(modes.data_part(config, rank, 8)) for rank in range(8)]
    for shard in (0, 1):
        images, labels = read(modes.Part(shard=shard, shards=2))
        upper_left, upper_right, lower_left, lower_right = (part[0] for part in parts[4 * shard : 4 * shard + 4])
        assert upper_left.shape == (4, 1, 16, 16)
        upper, lower = (np.concatenate(pair, 3) for pair in ((upper_left, upper_right), (lower_left, lower_right)))
        np.testing.assert_array_equal(np.concatenate((upper, lower), 2), images)
        assert all((part[1] == labels).all() for part in parts[4 * shard : 4 * shard + 4])
