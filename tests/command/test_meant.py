"""What a person may have meant by words that a script does not take: the message says it."""

import re

import pytest
from command_lines import command
from launch import launching

from hccl_tools.common import project
from hccl_tools.common.refusal import USAGE, Refusal
from tools.config import near_configs
from tools.launch.programs import program

FIXED = f"has a fixed number of ranks; for any other number: bash {project.ROOT}/scripts/launch.sh -n"
WRITTEN = "write the number of ranks as -n {}, before the program or the config"
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
        ("run.sh", "8 data", "the arguments have another order: DATA_PATH RANK_SIZE"),
        ("run_pipeline.sh", "Ascend data", "the arguments have another order: DATA_PATH DEVICE_TARGET"),
        (
            "ascend2p.sh",
            "--pytest train.py config.yaml",
            "--pytest runs tests, which do not take a config; give only one of the two",
        ),
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


# ---- programs, modules and configs that are nearly there ----------------------------------------


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder with a program, a package and two configs."""
    monkeypatch.chdir(tmp_path)
    configs = ("own/lenet5_first.yaml", "own/lenet5_other.yml", "own/x.txt")
    for name in ("my_train.py", "pkg/__init__.py", "pkg/train.py", *configs):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("my_train --lr 1", "my_train.py"),
        ("./my_trian --lr 1", "./my_train.py"),
        ("pyhton x.py", "python"),
        ("nothing --lr 1", ""),
    ],
)
def test_a_program_that_is_nearly_there(places, words, near):
    with pytest.raises(Refusal) as refusal:
        command("launch.sh", f"-n 2 {words}")
    said = refusal.value.lines[0].partition("; see: ")[0]
    assert said.endswith(f"and no such file; did you mean {near}?" if near else "and no such file")


@pytest.mark.parametrize(
    ("module", "near"),
    [
        ("my_train.py", "; did you mean the file my_train.py without -m, or -m my_train?"),
        ("pkg/train.py", "; did you mean the file pkg/train.py without -m, or -m pkg.train?"),
        ("my_trian", "; did you mean -m my_train?"),
        ("pkg.trian", "; did you mean -m pkg.train?"),
        ("nothing.like.it", "name that folder in PYTHONPATH"),
    ],
)
def test_a_module_that_is_nearly_there(places, module, near):
    with pytest.raises(Refusal) as refusal:
        program.find(launching.request("-m", module, program="1"), "run")
    assert refusal.value.lines[0].endswith(near)


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("own/lenet.yaml", "own/lenet5_first.yaml or own/lenet5_other.yml"),
        ("own/lenet5_first_more.yaml", "own/lenet5_first.yaml"),
        ("own/LENET5_FIRST.yaml", "own/lenet5_first.yaml"),
        ("lenet5_mnist.yaml", project.path("configs", "mnist", "lenet5_mnist.yaml")),
        ("mnist/lenet5_mnist.yml", project.path("configs", "mnist", "lenet5_mnist.yaml")),
        ("own/le.yaml", ""),
        ("own/nothing.yaml", ""),
        ("lenet", ""),
    ],
)
def test_a_config_that_is_nearly_there(places, path, near):
    assert near_configs.question(path) == (f"; did you mean {near}?" if near else "")


def test_configs_of_this_folder_come_first(places):
    (places / "configs" / "deep").mkdir(parents=True)
    (places / "configs" / "deep" / "lenet5_mnist.yaml").touch()
    assert near_configs.question("lenet5_mnist.yaml").startswith("; did you mean configs/deep/lenet5_mnist.yaml or /")
    (places / "configs" / "\33[2J.yaml").touch()
    assert near_configs.question("no/\33[2J.yaml").isprintable()
