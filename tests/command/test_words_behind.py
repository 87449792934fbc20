"""Options of the launcher behind the program: a note, where the program does not know them."""

import pytest
from command_lines import command
from launch.launching import request

from tools.launch.programs import word_hints
from tools.launch.request import Request


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import mindspore\nmindspore.set_context(device_target='CPU')\n")
    return tmp_path


def hints(*words, ranks=8, **given):
    return word_hints.remarks(request(program="1", **given).replace(trainer_arguments=words), ranks)


@pytest.mark.parametrize(
    "words",
    [
        ("python", "train.py", "--max_restarts=3"),
        ("python", "-u", "-W", "ignore", "train.py", "--max_restarts=3"),
        ("train.py", "-n", "4"),
        ("train.py", "--lr", "0.1", "-np", "4"),
        ("train.py", "--device-target", "CPU"),
        ("train.py", "--devices=0,1"),
        ("train.py", "--exclude", "3"),
        ("train.py", "--nproc_per_node", "8"),
        ("train.py", "--dry_run"),
    ],
)
def test_an_option_of_ours_behind_a_program_that_does_not_know_it(words):
    (said,) = hints(*words)
    option = " ".join(words[words.index("train.py") + 1 :]).removeprefix("--lr 0.1 ")
    assert said == (
        f"note: {option} comes after train.py, so the program gets it; options of run.sh come before the program"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("python", "-m", "train", "--max_restarts=3"),
        ("train.py", "--log_dir", "out", "--config", "c.yaml", "--report"),
        ("train.py", "-n", "8"),
        ("train.py", "-n", "many"),
        ("train.py", "--device_target", "Ascend"),
        ("train.py", "--device_target", "TPU"),
        ("train.py", "---n", "4"),
        ("train.py", "n", "4"),
        ("missing.py", "-n", "4"),
        ("bash", "start.sh", "-n", "4"),
    ],
)
def test_other_words_are_the_programs(words):
    assert hints(*words) == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-n", "4"), "parser.add_argument('-n', type=int)"),
        (("-n", "4"), 'parser.add_argument("--number", "-num")'),
        (("--device_target", "CPU"), "parser.add_argument('--device-target')"),
        (("--devices", "0"), "class Arguments:\n    devices: str = ''"),
        (("--devices", "0"), "flag('devices')"),
        (("--devices", "0"), "import fire\n"),
        (("--devices", "0"), "for name in config:\n    parser.add_argument('--' + name)"),
        (("--max_restarts=3",), "parser.add_argument('--max-restarts')"),
    ],
)
def test_a_program_that_defines_the_option_gets_it_without_a_note(folder, words, text):
    assert len(hints("train.py", *words)) == 1
    (folder / "arguments.py").write_text(text)
    assert hints("train.py", *words) == []
    (folder / "arguments.py").unlink()
    (folder / "own").mkdir()
    (folder / "own" / "options.py").write_text(text)
    (folder / "train.py").write_text("from own import options\n")
    assert hints("train.py", *words) == []


def test_keys_of_a_config_may_be_options(folder):
    (folder / "default.yaml").write_text("device_target: CPU\n")
    assert hints("train.py", "--device_target", "CPU") == []


@pytest.mark.parametrize(
    ("typed", "moved"),
    [
        ("train.py --lr 1 -n 4", "bash scripts/launch.sh -n 4 train.py --lr 1"),
        ("--quiet -- train.py -n 4 x", "bash scripts/launch.sh --quiet -n 4 -- train.py x"),
        ("train.py --devices=0 'a b'", r"bash scripts/launch.sh --devices=0 train.py a\ b"),
        ("train.py -n 4 " + "x" * 300, ""),
    ],
)
def test_the_command_that_was_meant(typed, moved):
    asked = Request.from_words(command("launch.sh", typed).words)
    (said,) = word_hints.remarks(asked, 2)
    assert said.endswith(f"for the launcher write it before: {moved}" if moved else "come before the program")
    if moved:
        again = Request.from_words(command("launch.sh", moved.removeprefix("bash scripts/launch.sh ")).words)
        assert (again.n, again.devices) == ((4, None) if "-n 4" in moved else (None, "0"))
        assert len(again.trainer_arguments) < len(asked.trainer_arguments)
