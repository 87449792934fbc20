"""What docs/tutorials*.md and examples/README.md say of single rows: each word is tried here."""

import importlib.util
import mmap
import os
import shutil
from pathlib import Path

import pytest
import ranks
from suite.needs import need, needs_packages

EXAMPLES = ranks.PROJECT / "examples"
STUB = ranks.PROJECT / "tests" / "fixtures" / "stub_mindspore"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device_target", "CPU", "."], 'gpu.py:21: the program itself asks for device_target "GPU"'),
        (["--device_target", "CPU"], "gpu.py:25: the program reads DATA_PATH, and nothing sets it; "),
    ],
)
def test_the_example_for_gpus_is_refused_in_one_line_on_cpu_and_without_data(tmp_path, words, said):
    need("mpirun")
    code, out, err = ranks.typed(
        tmp_path, EXAMPLES / "distributed_training_gpu" / "run_gpu.sh", *words, PYTHONPATH=str(STUB)
    )
    assert code == 78 and out == "" and err.count("\n") == 1 and os.listdir(tmp_path) == []
    assert said in err


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(EXAMPLES.rglob("*.sh")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_folder_that_was_copied_elsewhere_says_what_it_lacks(tmp_path, script):
    folder = shutil.copytree(script.parent, tmp_path / "elsewhere" / "mine")
    code, out, err = ranks.typed(tmp_path, folder / script.name, ".", 8)
    assert code == 78 and out == ""
    assert err.startswith(f"{script.name}: {tmp_path}/scripts/") and err.count("\n") == 1
    assert err.endswith(".sh is missing: this folder needs the project around it\n")


@needs_packages("mindspore")
@pytest.mark.thorough
def test_mindspore_does_not_read_the_variable_of_the_tutorials_for_running_operator_by_operator():
    folder = Path(importlib.util.find_spec("mindspore").submodule_search_locations[0])
    read = [path.name for path in folder.rglob("*.so*") if path.is_file() and has(path, b"GRAPH_OP_RUN")]
    read += [path.name for path in folder.rglob("*.py") if b"GRAPH_OP_RUN" in path.read_bytes()]
    assert read == []  # docs/tutorials.md, docs/tutorials_mnist.md, docs/mpirun.md and --no_sink say so


def has(path, text):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(text) >= 0
