"""Checkpoints for another number of ranks: slices merged and cut anew, by our strategy files and by MindSpore's."""

import json
import os

import pytest
from checkpoint_files import WIDTH, cut_by_hand, saved, values
from needs import Later, needs_packages

from tools import convert_ckpt
from tools.trainer.checkpoints import choosing

ms, nn, np = Later("mindspore"), Later("mindspore.nn"), Later("numpy")
parallel = Later("tools.trainer.models.parallel")

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


def test_stages_are_joined(tmp_path):
    net = parallel.WholeNet(hidden_size=16)
    for rank, stage in enumerate((parallel.FirstStage(net), parallel.LastStage(net, nn.CrossEntropyLoss()))):
        saved(tmp_path / "old", rank, 2, net=stage, model="hand_pipeline_net", mode="hybrid_parallel")
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "new"), "--ranks", "1"]) == 0
    (path,) = (path for path, _ in choosing.in_all_ranks(str(tmp_path / "new")).values())
    assert set(values(path)) == {parameter.name for parameter in net.get_parameters()}


def test_mindspores_own_strategy_files_are_taken(tmp_path):
    """As after semi-auto training without integrated_save: from 2 devices' slices to 4, and to one."""
    whole = np.arange(32, dtype=np.float32).reshape(8, 4)

    def strategy(name, devices):
        layout = {"dev_matrix": [devices], "tensor_map": [0, -1], "param_split_shape": [], "field": 0}
        layout |= {"opt_weight_shard_step": 0, "opt_weight_shard_size": 0}
        operator = {"stage": 0, "parallel_strategy": [{"dim": [devices, 1]}]}
        document = {"parallel_strategy_item": {"MatMul": operator}, "parallel_layout_item": {"w": layout}}
        (tmp_path / name).write_text(json.dumps({"current_stage": 0, **document}))
        return str(tmp_path / name)

    for rank, part in enumerate(np.split(whole, 2)):
        (tmp_path / "old" / f"rank_{rank}").mkdir(parents=True)
        path = str(tmp_path / "old" / f"rank_{rank}" / "net-1_5.ckpt")
        ms.save_checkpoint([{"name": "w", "data": ms.Tensor(part)}], path)
    from_two, to_four = ["--src_strategy", strategy("two.json", 2)], ["--dst_strategy", strategy("four.json", 4)]
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "four"), *from_two, *to_four]) == 0
    assert convert_ckpt.main([str(tmp_path / "old"), str(tmp_path / "one"), *from_two]) == 0
    parts = [values(next((tmp_path / "four" / f"rank_{rank}").glob("*.ckpt")))["w"] for rank in range(4)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(values(next((tmp_path / "one" / "rank_0").glob("*.ckpt")))["w"], whole)


def test_what_cannot_be_converted_is_said_and_leaves_nothing(tmp_path, capsys):
    cut_by_hand(tmp_path / "old", 2)
    new = str(tmp_path / "new")
    assert convert_ckpt.main([str(tmp_path / "old"), new, "--ranks", "5"]) == 1
    said = capsys.readouterr().err
    assert "fc1.weight of " in said and "24 rows or columns" in said and said.count("\n") == 1
    for damaged in ("", "[]", "[" * 9999, '{"parallel_layout_item": {"w": 1}}'):
        (tmp_path / "old" / "strategy.json").write_text(damaged)
        assert convert_ckpt.main([str(tmp_path / "old"), new, "--ranks", "1"]) == 1
        assert "strategy.json is damaged, or no strategy file; copy it again from the run that saved" in capsys.readouterr().err
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
