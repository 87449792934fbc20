"""A program that reads DATA_PATH is refused where nothing sets it, and its file cannot do without."""

from types import SimpleNamespace

import pytest

from hccl_tools.common.refusal import REFUSED, Refusal
from tools.launch import checks
from tools.launch.programs import program_calls

READ = 'data = create(os.environ["DATA_PATH"])'


@pytest.fixture
def said(world, monkeypatch):
    """said(line, line, data_path=...): why a program of these lines is refused; empty if it is not."""
    monkeypatch.delenv("DATA_PATH", raising=False)

    def check(*lines, data_path=None):
        (world / "net.py").write_text("\n".join(("import os", *lines)) + "\n")
        try:
            program_calls.check_data("net.py", SimpleNamespace(data_path=data_path))
        except Refusal as refusal:
            assert refusal.status == REFUSED and len(refusal.lines) == 1
            return refusal.lines[0]
        return ""

    return check


@pytest.mark.parametrize("line", [READ, "    x = environ['DATA_PATH']", READ + "  # the folder"])
def test_a_program_that_needs_it_is_refused_with_its_line(said, line):
    assert said("def main():", line).startswith("net.py:3: the program reads DATA_PATH, and nothing sets it; ")


def test_an_argument_or_a_variable_is_enough(said, monkeypatch):
    assert said(READ, data_path="data") == ""
    monkeypatch.setenv("DATA_PATH", "data")
    assert said(READ) == ""


@pytest.mark.parametrize(
    "lines",
    [
        [f"# {READ}"],
        ['data = os.environ.get("DATA_PATH", "data")'],
        ['os.environ["DATA_PATH"] = "data"', READ],
        ['os.environ.setdefault("DATA_PATH", "data")', READ],
        ['if "DATA_PATH" in os.environ:', f"    {READ}"],
        ["try:", f"    {READ}", "except KeyError:", "    pass"],
    ],
)
def test_one_that_may_do_without_is_not_judged(said, lines):
    assert said(*lines) == ""


def test_a_start_script_has_set_the_variables_of_its_ranks(world, monkeypatch):
    monkeypatch.delenv("DATA_PATH", raising=False)
    (world / "net.py").write_text(f"import os\n{READ}\n")
    request = SimpleNamespace(data_path=None, no_check=False, device_target="CPU", ranks_file="ranks.sh")
    checks.program_calls(request, "net.py")
    with pytest.raises(Refusal, match="reads DATA_PATH"):
        checks.program_calls(SimpleNamespace(**{**vars(request), "ranks_file": ""}), "net.py")


def test_a_file_that_is_not_there_is_left_to_other_checks(said, world):
    program_calls.check_data("nowhere.py", SimpleNamespace(data_path=None))
