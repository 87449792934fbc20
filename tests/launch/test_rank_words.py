"""Words of a program that differ from rank to rank, and the hints about words that should."""

import pytest
from launching import request

from tools.launch.programs import rank_words, word_hints

VALUES = rank_words.of_rank(3, 1, 5, 8, "/logs/{rank}")


@pytest.mark.parametrize(
    ("word", "own"),
    [
        ("--device_id={device}", "--device_id=5"),
        ("{rank}/{local_rank} of {world_size}", "3/1 of 8"),
        ("{run}/ckpt_{rank}", "/logs/{rank}/ckpt_3"),
        ("{{rank}}", "{rank}"),
        ("{rank", "{rank"),
        ("rank}", "rank}"),
        ("{}{rank}{", "{}3{"),
        ('{"a": {"rank": 1}, "b": "{device}"}', '{"a": {"rank": 1}, "b": "5"}'),
        ("{epoch}_{RANK}_{ rank }", "{epoch}_{RANK}_{ rank }"),
        ("{0}%d$rank", "{0}%d$rank"),
    ],
)
def test_only_known_names_in_braces_are_replaced(word, own):
    assert rank_words.replaced(["a", word], VALUES) == ["a", own]


def hints(*words, ranks=8, **given):
    return word_hints.remarks(request(program="1", **given).replace(trainer_arguments=words), ranks)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (
            ["train.py", "--device_id=$DEVICE_ID"],
            "gets --device_id=$DEVICE_ID literally; for a value per rank, write --per_rank_words ",
        ),
        (["train.py", "--rank=${RANK_ID}", "--device_num=$RANK_SIZE"], "and --rank={rank} after it"),
        (["train.py", "--rank_id", "$i"], "before the program and {rank} after it"),
        (["python", "train.py", "$i"], "before the program and {device} after it"),
        (["train.py", "--device_id=", "--run_distribute=True"], "--device_id has no value: "),
        (["train.py", "--device-id", "--run_distribute=True"], "--device-id has no value: "),
        (["train.py", "--rank_id"], "and --rank_id={rank} after it"),
        (["train.py", "--device_num="], "and --device_num={world_size} after it"),
        (["train.py", "--device_id=0"], "all 8 ranks get --device_id=0; "),
        (["train.py", "--rank_id", "0"], "all 8 ranks get --rank_id=0; "),
        (["train.py", "out_{rank}"], r"every rank gets out_\{rank\} unchanged; "),
        (["bash", "start.sh", "$DEVICE_ID"], "before the program and {device} after it"),
    ],
)
def test_a_word_that_seems_to_be_for_one_rank_gets_a_hint(words, hint):
    (said,) = hints(*words)
    assert said.startswith("note: ") and hint in said


@pytest.mark.parametrize(
    "words",
    [
        ["train.py", "--device_target=CPU", "--rank_table=x.json", "--device", "0"],
        ["train.py", "$HOME", "--data=", "{epoch}", "$5", "a$"],
        ["bash", "-c", "python train.py --device_id=$DEVICE_ID"],
        ["/bin/sh", "-e", "-c", "train --rank $RANK_ID"],
        ["bash", "-lc", "python train.py --rank $RANK_ID"],
        ["env", "A=1", "nohup", "bash", "-c", "train --rank $RANK_ID"],
    ],
)
def test_other_words_get_none(words):
    assert hints(*words) == []


def test_with_the_option_and_with_one_rank_nothing_is_said():
    assert hints("train.py", "--device_id={device}", "{rank}", per_rank_words="1") == []
    assert hints("train.py", "--device_id=0", ranks=1) == []
    assert "contain none of {rank} " in hints("train.py", per_rank_words="1")[0]
