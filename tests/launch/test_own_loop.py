"""A shell script as the program of a launch that itself starts the ranks of a job, in a loop, is refused."""

import pytest

from hccl_tools.common.refusal import Refusal
from tools.launch.programs import own_loop

LOOPS = [
    "for ((i=0; i<8; i++))\ndo\n  export DEVICE_ID=$i\n  export RANK_ID=$i\n  python train.py &> log &\ndone\n",
    "for((i=0;i<8;i++)); do\nRANK_ID=$i python train.py &\ndone",
    "for i in 0 1; do export DEVICE_ID=$((first + i)) RANK_ID=$i; python train.py & done",
    "for i in $(seq 8); do\n  export RANK_ID=$((rank_start + i))\n  python train.py \\\n    --lr 1 > log 2>&1 &\ndone",
    "for ((i = 0; i < n; i++)); do\n  rank=$((i + 8))\n  export RANK_ID=${rank}\n  python train.py &\ndone",
    "for i in 0 1; do\n  export RANK_ID=`expr $i + 8`\n  python train.py &\ndone",
    "while [ $n -lt 8 ]; do\nexport RANK_ID=$((start + n))\npython train.py &\nn=$((n+1))\ndone",
    "while (( i < 8 )); do\nexport RANK_ID=$i\npython train.py &\n((i++))\ndone",
]
OTHERS = [
    "",
    "export RANK_ID=0\npython train.py &\n",
    "exec python train.py --rank $RANK_ID\n",
    "export RANK_ID=${RANK_ID:-0}\nfor f in *.txt; do cat $f; done\npython train.py &\n",
    "for i in 0 1; do\n  # export RANK_ID=$i\n  python train.py &\ndone\n",
    "for i in 0 1; do\n  export RANK_ID=$i\n  python train.py && echo done\ndone\n",
    "for host in a b; do ping $host & done\nexport RANK_ID=$OMPI_COMM_WORLD_RANK\npython train.py\n",
]


@pytest.mark.parametrize("text", LOOPS)
def test_a_loop_over_ranks_is_seen(text):
    line = own_loop.place(text)
    assert line > 0 and "RANK_ID=" in text.splitlines()[line - 1]


@pytest.mark.parametrize("text", OTHERS)
def test_other_scripts_are_not(text):
    assert own_loop.place(text) == 0


@pytest.mark.parametrize("before", [["./"], ["bash", ""], ["/bin/sh", ""], ["bash", "-e", "-x", ""]])
def test_the_refusal_names_the_line_and_a_command_that_launches_the_ranks(before, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run it.sh").write_text(LOOPS[0])
    with pytest.raises(Refusal) as refused:
        own_loop.check([*before[:-1], before[-1] + "run it.sh", "a b", "c"])
    assert "run it.sh:4: " in str(refused.value)
    assert "/scripts/launch.sh --zoo run\\ it.sh a\\ b c; " in str(refused.value)


def test_the_command_names_a_shell_where_the_name_of_the_script_does_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run_loop").write_text(LOOPS[0])
    with pytest.raises(Refusal, match=r"/scripts/launch.sh --zoo bash run_loop a; "):
        own_loop.check(["bash", "run_loop", "a"])


def test_other_programs_are_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(LOOPS[0])
    own_loop.check(["python", "run.sh"])
    own_loop.check(["bash"])
    own_loop.check(["no_such.sh"])
    own_loop.check(["bash", "-c", LOOPS[0]])
