"""A program with the user's own words: which file of Python it runs, and what is checked before it."""

from types import SimpleNamespace

import pytest
from launching import request

from hccl_tools.common.refusal import Refusal
from tools.launch import job
from tools.launch.programs import program


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()


@pytest.mark.parametrize(
    ("words", "source"),
    [
        ("python train.py --a", "train.py"),
        ("python -u -W ignore -X dev train.py", "train.py"),
        ("python -c pass none.py", None),
        ("python -m json.tool none.py", None),
        ("echo none.py", None),
    ],
)
def test_the_file_that_a_python_runs(words, source):
    assert program.find(request(*words.split(), program="1"), "run").source == source


@pytest.mark.parametrize("options", ["", "-u ", "-W ignore ", "-uB "])
def test_a_file_that_is_not_there_is_refused_behind_options_of_python_too(options):
    words = f"python {options}none.py".split()
    with pytest.raises(Refusal, match="none.py: no such file"):
        program.find(request(*words, program="1"), "run")


def test_no_check_starts_what_looks_like_a_launcher_in_every_rank():
    placed = SimpleNamespace(world=2, ranks=[(0, 0), (1, 1)])
    wanted = request("bash", "-c", "mpirun x.py", program="1")
    with pytest.raises(Refusal, match="starts ranks itself"):
        job.of_program(wanted, placed, "run")
    assert job.of_program(wanted.replace(no_check=True), placed, "run").words[1:] == ["-c", "mpirun x.py"]
