"""Checkpoints for another number of ranks: slices merged and cut anew, by our strategy files and by MindSpore's."""

import json
import os
import re

import json_pages
import pytest
from checkpoint_files import RUN, WIDTH, cut_by_hand, saved, values
from suite.needs import Later, needs_packages

from tools import convert_ckpt
from tools.trainer.checkpoints import CheckpointError, choosing, labels, strategies

ms, nn, np = Later("mindspore"), Later("mindspore.nn"), Later("numpy")
parallel, resume = Later("tools.trainer.models.parallel"), Later("tools.trainer.resume")

pytestmark = [needs_packages("mindspore", "numpy"), pytest.mark.thorough]


@pytest.fixture(autouse=True)
def on_cpu():
    ms.set_device("CPU")


@pytest.mark.parametrize(("before", "after"), [(2, 1), (4, 1), (2, 4), (4, 2), (1, 2), (2, 2), (2, 3), (4, 6), (6, 3)])
def test_slices_are_merged_and_cut_anew(tmp_path, before, after, capsys):
    cut_by_hand(tmp_path / "old", before)
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "new"), "--ranks", str(after)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'new'}\n"
    for rank in range(after):
        path, label = choosing.in_all_ranks(str(tmp_path / "new"))[rank]
        wanted = parallel.HybridParallelNet(hidden_size=WIDTH, seed=3, rank=rank, ranks=after).parameters_dict()
        found = values(path)
        assert label.ranks == after and label.rank == rank and set(found) == set(wanted)
        for name, parameter in wanted.items():
            np.testing.assert_array_equal(found[name], parameter.asnumpy(), err_msg=name)
    layouts = json.loads((tmp_path / "new" / "strategy.json").read_text())["parallel_layout_item"]
    assert layouts["fc1.weight"]["dev_matrix"] == [after]


def test_data_parallel_checkpoints_are_the_same_on_any_number_of_ranks(tmp_path):
    net = nn.Dense(2, 3)
    for rank in range(2):
        saved(tmp_path / "old", rank, 2, net=net)
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "new"), "--ranks", "3"]) == 0
    for path, label in choosing.in_all_ranks(str(tmp_path / "new")).values():
        assert label.ranks == 3
        np.testing.assert_array_equal(values(path)["weight"], net.weight.asnumpy())


def test_json_is_what_was_written(tmp_path, capsys, monkeypatch):
    cut_by_hand(tmp_path / "old", 2)
    monkeypatch.chdir(tmp_path)
    assert convert_ckpt.main(["old", "new", "-n", "4", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    json_pages.check("convert_ckpt.py", made)
    assert (made["folder"], made["ranks"]) == (str(tmp_path / "new"), 4)
    assert made["strategy"] == str(tmp_path / "new" / "strategy.json") and os.path.isfile(made["strategy"])
    assert [row["rank"] for row in made["files"]] == [0, 1, 2, 3]
    for row in made["files"]:
        assert row["file"].startswith(f"{tmp_path}/new/rank_{row['rank']}/")
        assert os.path.getsize(row["file"]) == row["bytes"]


def test_stages_are_joined(tmp_path):
    net = parallel.WholeNet(hidden_size=16)
    for rank, stage in enumerate((parallel.FirstStage(net), parallel.LastStage(net, nn.CrossEntropyLoss()))):
        saved(tmp_path / "old", rank, 2, net=stage, model="hand_pipeline_net", mode="hybrid_parallel")
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "new"), "--ranks", "1"]) == 0
    (path,) = (path for path, _ in choosing.in_all_ranks(str(tmp_path / "new")).values())
    assert set(values(path)) == {parameter.name for parameter in net.get_parameters()}


def test_slices_that_were_merged_are_cut_anew(tmp_path):
    cut_by_hand(tmp_path / "four", 4)
    for before, after, count in (("four", "one", 1), ("one", "two", 2)):
        assert convert_ckpt.main([str(tmp_path / before), str(tmp_path / after), "--ranks", str(count)]) == 0
    path, label = choosing.in_all_ranks(str(tmp_path / "two"))[1]
    net = parallel.HybridParallelNet(hidden_size=WIDTH, seed=3, rank=1, ranks=2)
    np.testing.assert_array_equal(values(path)["fc1.weight"], net.fc1.weight.asnumpy())
    assert label.whole == 0 and choosing.in_all_ranks(str(tmp_path / "one"))[0][1].whole == 1


# ---- by strategy files -------------------------------------------------------------------------------


def strategy(path, devices, name="w", tensor_map=(0, -1)):
    """A strategy file as MindSpore writes it in semi-auto mode; returns its path."""
    layout = {"dev_matrix": [devices], "tensor_map": list(tensor_map), "param_split_shape": [], "field": 0}
    layout |= {"opt_weight_shard_step": 0, "opt_weight_shard_size": 0}
    operator = {"stage": 0, "parallel_strategy": [{"dim": [devices, 1]}]}
    document = {"parallel_strategy_item": {"MatMul": operator}, "parallel_layout_item": {name: layout}}
    path.write_text(json.dumps({"current_stage": 0, **document}))
    return str(path)


def slices(root, ranks, label=None):
    """Checkpoints of w, 12 x 4, cut over `ranks` ranks, of another trainer or with the label of ours; returns w."""
    whole = np.arange(48, dtype=np.float32).reshape(12, 4)
    for rank, part in enumerate(np.split(whole, ranks)):
        path = root / f"rank_{rank}" / "net-1_5.ckpt"
        path.parent.mkdir(parents=True)
        ms.save_checkpoint([{"name": "w", "data": ms.Tensor(part)}], str(path))
        if label:
            labels.write(str(path), labels.sized(str(path), label.replace(rank=rank, ranks=ranks)))
    return whole


OURS = labels.Label(
    model="semi_auto_parallel_net", mode="semi_auto_parallel", run=RUN, epoch=1, steps=5, rank=0, ranks=1
)


def weights(root, ranks):
    """w in each rank's only checkpoint."""
    return [values(next((root / f"rank_{rank}").glob("*.ckpt")))["w"] for rank in range(ranks)]


@pytest.mark.parametrize("label", [None, OURS])
@pytest.mark.parametrize("after", [1, 3, 4])
def test_mindspores_own_strategy_files_are_taken(tmp_path, label, after):
    """As after semi-auto training without integrated_save: from 2 devices' slices to others', and to one."""
    whole = slices(tmp_path / "old", 2, label)
    words = ["--src_strategy", strategy(tmp_path / "old.json", 2)]
    words += ["--dst_strategy", strategy(tmp_path / "new.json", after)] if after > 1 else []
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "new"), *words]) == 0
    np.testing.assert_array_equal(np.concatenate(weights(tmp_path / "new", after)), whole)
    assert strategies.beside(str(tmp_path / "new")).endswith("strategy.json") == (after > 1)
    if label:
        assert [found.ranks for _, found in choosing.in_all_ranks(str(tmp_path / "new")).values()] == [after] * after


def test_every_rank_gets_the_merged_network_where_mindspore_will_cut_it(tmp_path):
    whole = slices(tmp_path / "old", 2, OURS)
    words = ["--src_strategy", strategy(tmp_path / "old.json", 2), "--ranks", "3"]
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "new"), *words]) == 0
    for found in weights(tmp_path / "new", 3):
        np.testing.assert_array_equal(found, whole)
    assert [label.whole for _, label in choosing.in_all_ranks(str(tmp_path / "new")).values()] == [1, 1, 1]
    # saved whole (integrated_save), they need no strategy file
    assert convert_ckpt.main([str(tmp_path / "new"), str(tmp_path / "for_4"), "--ranks", "4"]) == 0
    np.testing.assert_array_equal(weights(tmp_path / "for_4", 4)[3], whole)
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "x"), "--ranks", "4"]) == 1


def test_slices_of_mindspores_are_merged_before_training_goes_on(tmp_path, monkeypatch):
    slices(tmp_path / "ckpt", 1, OURS)
    monkeypatch.setenv("RESUME", "1")
    section = {"ckpt_save_dir": str(tmp_path / "ckpt"), "dataset_sink_mode": False}
    semi = {"mode": "semi_auto_parallel", "pipeline_stages": 1}
    config = {"model": {"name": "semi_auto_parallel_net"}, "train": section, "parallel": semi}
    with pytest.raises(
        CheckpointError, match=r"convert_ckpt.py .*/ckpt NEW_FOLDER --src_strategy .*rank_0.ckpt --ranks 1"
    ):
        resume.Continuation(config, 0, 1, 5).load(nn.Dense(1, 1), None, None)


NOT_STRATEGIES = ["", "[]", "{}", "[" * 9999, '{"parallel_layout_item": {"w": 1}}', "\0\1\2", "garbage" * 9]


@pytest.mark.parametrize("ending", ["json", "ckpt"])
@pytest.mark.parametrize("text", NOT_STRATEGIES, ids=range(len(NOT_STRATEGIES)))
def test_what_is_no_strategy_file_is_named(tmp_path, capsys, text, ending):
    slices(tmp_path / "old", 1)
    file = tmp_path / f"x.{ending}"
    file.write_text(text)
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "new"), "--dst_strategy", str(file)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"x.{ending} is damaged, or no strategy file" in line


def test_a_checkpoint_is_no_strategy_file(tmp_path, capsys):
    slices(tmp_path / "old", 1)
    file = str(tmp_path / "old" / "rank_0" / "net-1_5.ckpt")
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "new"), "--dst_strategy", file]) == 1
    assert "no strategy file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("label", "devices", "how", "said"),
    [
        (None, 2, {"name": "other"}, "belongs to another network: .*/old has no such other"),
        (None, 2, {"tensor_map": (0, -1, -1)}, "belongs to another network: .*/old has no such w"),
        (None, 4, {}, "checkpoint file of rank[23] is needed .* but it is missing"),
        (OURS, 4, {}, "has the checkpoints of 2 ranks, and the strategy file of the job that saved is for 4"),
    ],
)
def test_a_strategy_file_of_another_job_is_refused_in_a_line(tmp_path, capsys, label, devices, how, said):
    slices(tmp_path / "old", 2, label)
    words = ["--src_strategy", strategy(tmp_path / "x.json", devices, **how)]
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "new"), *words]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(said, line)


def test_a_torn_checkpoint_of_another_trainer_and_a_missing_rank_are_said(tmp_path, capsys):
    slices(tmp_path / "old", 2)
    words = [str(tmp_path / "old"), str(tmp_path / "new"), "--src_strategy", strategy(tmp_path / "x.json", 2)]
    file = tmp_path / "old" / "rank_0" / "net-1_5.ckpt"
    content = file.read_bytes()
    file.chmod(0o600)
    file.write_bytes(content[:-7])
    assert convert_ckpt.main(words) == 1
    assert re.search("rank_0/net-1_5.ckpt cannot be read, it is damaged, cut off", capsys.readouterr().err)
    file.unlink()
    assert convert_ckpt.main(words) == 1
    assert "old has no rank_0 with a .ckpt file" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["old", "x.json"]


def test_what_cannot_be_converted_is_said_and_leaves_nothing(tmp_path, capsys):
    cut_by_hand(tmp_path / "old", 2)
    new = str(tmp_path / "new")
    assert convert_ckpt.main([str(tmp_path / "old"), new, "--ranks", "5"]) == 1
    said = capsys.readouterr().err
    assert "fc1.weight of " in said and "24 rows or columns" in said and said.count("\n") == 1
    for damaged in ("", "[]", "[" * 9999, '{"parallel_layout_item": {"w": 1}}'):
        (tmp_path / "old" / "strategy.json").write_text(damaged)
        assert convert_ckpt.main([str(tmp_path / "old"), new, "--ranks", "1"]) == 1
        assert (
            "strategy.json is damaged, or no strategy file; copy it again from the run that saved"
            in capsys.readouterr().err
        )
    os.unlink(tmp_path / "old" / "strategy.json")
    assert convert_ckpt.main([str(tmp_path / "old"), new, "--ranks", "1"]) == 1
    assert "strategy.json is missing" in capsys.readouterr().err
    for path in (tmp_path / "old" / "rank_1").glob("*"):
        path.unlink()
    assert convert_ckpt.main([str(tmp_path / "old"), new, "--ranks", "4"]) == 1
    assert "whole on all ranks" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["old"]
    for words in (["--ranks", "0"], [], ["--ranks", "2", "--src_strategy", "x"], ["--src_strategy", "missing"]):
        with pytest.raises(SystemExit, match="2"):
            convert_ckpt.main([str(tmp_path / "old"), new, *words])
