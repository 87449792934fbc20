"""What a person may have meant by words that a script does not take: the message says it."""

import re

import pytest
from command_lines import command

from hccl_tools.common.refusal import USAGE, Refusal

FIXED = "has its own number of ranks; any number: scripts/launch.sh -n"
WRITTEN = "the number of ranks is written as -n {}, before the program or the config"
ONE = "give one of them"


@pytest.fixture
def said(tmp_path, monkeypatch):
    """said("ascend2p.sh", "--consle"): the message about these words; empty if nothing is wrong."""
    monkeypatch.chdir(tmp_path)
    for name in ("config.yaml", "train.py"):
        (tmp_path / name).touch()
    (tmp_path / "data").mkdir()

    def of(script, words):
        try:
            command(script, words)
        except Refusal as refusal:
            assert refusal.status == USAGE
            return re.sub(r"; see: bash .* --help$", "", refusal.lines[0])
        return ""

    return of


@pytest.mark.parametrize(
    ("script", "words", "message"),
    [
        ("ascend2p.sh", "--consle all config.yaml", "unknown option --consle; did you mean --console?"),
        ("ascend2p.sh", "--hang-timout 3 config.yaml", "unknown option --hang-timout; did you mean --hang_timeout?"),
        ("run_mpirun.sh", "--netwrk x config.yaml", "unknown option --netwrk; did you mean --network?"),
        ("ascend2p.sh", "--no-such config.yaml", "unknown option --no-such"),
        ("ascend2p.sh", "--wait config.yaml", "unknown option --wait; did you mean --wait_for_devices?"),
        ("ascend2p.sh", "config.yaml --epochs 3", "unknown option --epochs; trainer arguments come after --"),
        ("run.sh", "-n4 data 2", "-n 4: the number of ranks is the argument RANK_SIZE"),
        ("launch.sh", "2 train.py", WRITTEN.format(2)),
        ("launch.sh", "--nproc_per_node=x t.py", "--nproc_per_node x is not a whole number of at most 8 digits"),
        ("run_msrun.sh", "-np auto t.py", "-np auto is not a whole number of at most 8 digits"),
        ("ascend2p.sh", "2 config.yaml", f"ascend2p.sh {FIXED} 2"),
        ("run.sh", "8 data", "the words are in another order: DATA_PATH RANK_SIZE"),
        ("run_pipeline.sh", "Ascend data", "the words are in another order: DATA_PATH DEVICE_TARGET"),
        ("ascend2p.sh", "--pytest train.py config.yaml", f"--pytest runs tests, which get no config; {ONE}"),
        (
            "run.sh",
            "--pytest train.py --train_script train.py data 2",
            f"--train_script and --pytest name two programs; {ONE}",
        ),
    ],
)
def test_the_message_says_what_was_meant(said, script, words, message):
    assert said(script, words) == message


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("run.sh", "data 8"),
        ("run.sh", "8 8"),
        ("run_pipeline.sh", "data Ascend"),
        ("run_mpirun.sh", "-np 2 config.yaml"),
    ],
)
def test_words_in_their_order_are_no_mistake(said, script, words):
    assert said(script, words) == ""
