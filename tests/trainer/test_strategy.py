"""Strategy files made before the job, and the keys of a config that name them."""

import os

import pytest
from checkpoint_files import WIDTH, cut_by_hand, values
from ranks import CONFIGS, config_without_eval, digits
from suite.needs import Later, needs_packages

from tools import convert_ckpt, strategy
from tools.config import config_file, modes
from tools.trainer import checkpoints, job
from tools.trainer.checkpoints import CheckpointError, strategies

ms, np, parallel = Later("mindspore"), Later("numpy"), Later("tools.trainer.models.parallel")

pytestmark = [needs_packages("mindspore", "sklearn"), pytest.mark.thorough]


@pytest.fixture(autouse=True)
def on_cpu():
    ms.set_device("CPU")


def made(path, config, ranks):
    """The exit code of strategy.py for a config of ours; the network has the width of the tests' checkpoints."""
    words = ["--ranks", str(ranks), str(path), "-o", f"model.hidden_size={WIDTH}"]
    return strategy.main([str(CONFIGS / "parallel" / config), *words])


@pytest.mark.parametrize("config", ["hybrid_digits.yaml", "semi_auto_digits.yaml"])
def test_a_strategy_made_before_the_job_cuts_as_the_job_does(tmp_path, config, capsys):
    """MindSpore cuts the whole network by our file; the slices are those of the network cut by hand."""
    cut_by_hand(tmp_path / "one", 1)
    new = tmp_path / "for_3.json"
    assert made(new, config, 3) == 0 and capsys.readouterr().out == f"{new}\n"
    assert strategies.ranks(str(new)) == 3 and "moments.fc1.weight" in strategies.read(str(new))
    assert convert_ckpt.main([str(tmp_path / "one"), str(tmp_path / "three"), "--dst_strategy", str(new)]) == 0
    for rank in range(3):
        net = parallel.HybridParallelNet(hidden_size=WIDTH, seed=3, rank=rank, ranks=3)
        found = values(next((tmp_path / "three" / f"rank_{rank}").glob("*.ckpt")))
        for name, parameter in net.parameters_dict().items():
            np.testing.assert_array_equal(found[name], parameter.asnumpy(), err_msg=name)


def test_the_file_is_the_one_that_the_job_writes(tmp_path):
    """Of layers cut by hand; but for the optimizer's moments, which the checkpoints of the test lack."""
    cut_by_hand(tmp_path, 4)
    assert made(tmp_path / "new.json", "hybrid_digits.yaml", 4) == 0
    job, new = strategies.read(str(tmp_path / "strategy.json")), strategies.read(str(tmp_path / "new.json"))
    assert {name: layout for name, layout in new.items() if not name.startswith("moments")} == job


@pytest.mark.parametrize(
    ("config", "ranks", "more", "said"),
    [
        ("auto_digits.yaml", 4, ["system.device_target=CPU"], '"Invalid backend: CPU"'),
        ("pipeline_digits.yaml", 4, ["system.device_target=CPU"], '"Invalid backend: CPU"'),
        ("hybrid_digits.yaml", 5, [], f"{WIDTH} cannot be cut into 5 equal parts"),
        ("../mnist/lenet5_digits.yaml", 4, [], "lenet5 in mode data_parallel has no strategy"),
        ("hand_pipeline_digits.yaml", 2, [], "hand_pipeline_net in mode hybrid_parallel has no strategy"),
        ("nix.yaml", 4, [], "nix.yaml: no such file"),
    ],
)
def test_what_has_no_strategy_is_refused_in_a_line(tmp_path, capsys, config, ranks, more, said):
    width = [f"model.hidden_size={WIDTH}"] if config == "hybrid_digits.yaml" else []
    words = [str(CONFIGS / "parallel" / config), "--ranks", str(ranks), str(tmp_path / "x.json")]
    assert strategy.main([*words, "-o", "system.seed=1", *width, *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line and os.listdir(tmp_path) == []


def test_what_cannot_be_written_is_refused_in_a_line(tmp_path, capsys):
    assert made(tmp_path / "nix" / "x.json", "hybrid_digits.yaml", 2) == 2
    assert "nix/x.json cannot be written: no folder" in capsys.readouterr().err
    (tmp_path / "x.json").mkdir()
    assert made(tmp_path / "x.json", "hybrid_digits.yaml", 2) == 2
    assert "x.json cannot be written: Is a directory" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        made(tmp_path / "x.yaml", "hybrid_digits.yaml", 2)
    assert "must end with .json or .ckpt" in capsys.readouterr().err


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """strategy.py's words where MindSpore compiles: here as a lone process, since the CPU back end cuts nothing."""
    for name in ("MS_SIMULATION_LEVEL", "RANK_SIZE", "RANK_ID"):
        monkeypatch.setenv(name, "0")  # and is as before afterwards
    monkeypatch.setattr(job, "before_mindspore", lambda config: None)
    monkeypatch.setattr(job, "start", lambda config, device: (0, 4))
    data = digits(tmp_path / "data", 40)
    words = [f"train.dataset.dataset_root={data}", "train.loader.batch_size=8", "model.name=dense"]
    config = config_without_eval("parallel/auto_digits.yaml", tmp_path)
    return [str(config), "--ranks", "4", str(tmp_path / "cuts.json"), "-o", *words, "model.image_size=32"]


def test_mindspore_compiles_for_ranks_that_are_not_there(alone, capsys):
    assert strategy.main(alone) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("cuts.json; nothing of it is cut")
    assert [os.environ[name] for name in ("MS_SIMULATION_LEVEL", "RANK_SIZE", "RANK_ID")] == ["0", "4", "0"]


def test_a_compilation_that_fails_is_one_line(alone, capsys, monkeypatch):
    def fail(*inputs):
        raise RuntimeError("Invalid backend: CPU\n\n---- C++ Call Stack")

    monkeypatch.setattr("mindspore.nn.Cell.compile", fail)
    assert strategy.main(alone) == 2
    said = "strategy.py: MindSpore cannot compile this for 4 ranks: Invalid backend: CPU\n"
    assert capsys.readouterr().err == said


# ---- the keys of a config ----------------------------------------------------------------------------


def semi_auto(**keys):
    """The filled config of semi-auto mode with keys of the section `parallel`."""
    config = config_file.load(str(CONFIGS / "parallel" / "semi_auto_digits.yaml"))
    config.override([f"parallel.{key}={value}" for key, value in keys.items()])
    assert config.problems() == []
    return config.filled


@pytest.fixture
def context(monkeypatch):
    """What is given to set_auto_parallel_context."""
    found = {}
    monkeypatch.setattr("mindspore.set_auto_parallel_context", lambda **settings: found.update(settings))
    return found


def test_mindspore_gets_the_files_that_the_config_names(tmp_path, context, monkeypatch):
    monkeypatch.setenv("LOG_DIR", str(tmp_path))
    job.set_mode(semi_auto(), rank=1, ranks=4)
    default = {"save_file": f"{tmp_path}/ckpt/strategy/rank_1.ckpt", "only_trainable_params": False}
    assert context["strategy_ckpt_config"] == default
    load = str(tmp_path / "cuts.json")
    assert made(load, "semi_auto_digits.yaml", 4) == 0
    keys = {"strategy_ckpt_save_file": f"{tmp_path}/of_{{rank}}.ckpt", "strategy_ckpt_load_file": load}
    job.set_mode(semi_auto(**keys), rank=1, ranks=4)
    named = {"save_file": f"{tmp_path}/of_1.ckpt", "only_trainable_params": False, "load_file": load}
    assert context["strategy_ckpt_config"] == named
    with pytest.raises(CheckpointError, match=r"cuts.json is for 4 ranks, but there are 2; .*tools/strategy.py"):
        job.set_mode(semi_auto(**keys), rank=1, ranks=2)


def test_a_strategy_file_that_is_missing_or_without_meaning_is_a_problem_of_the_config(tmp_path):
    config = semi_auto(strategy_ckpt_load_file=str(tmp_path / "nix.json"))
    (problem,) = checkpoints.problems(config)
    assert problem.pointer == "/parallel/strategy_ckpt_load_file" and "nix.json: no such file" in problem.text
    config["parallel"]["mode"] = "data_parallel"
    config["parallel"]["dataset_strategy"] = "data_parallel"
    (problem,) = modes.problems(config, 4, "Ascend")
    assert "strategy_ckpt_load_file has no meaning in mode data_parallel" in problem.text
