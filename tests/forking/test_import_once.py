"""--import_once in the plan: what is imported once, and when the ranks cannot be forks."""

import sys

import pytest
from launch.launching import request

from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from tools.launch.job import Job
from tools.launch.programs import import_once
from tools.launch.programs.import_once import Imports


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def job(*words, text="import numpy\n", needs=False):
    """A job of a program with this text, run by these words after Python."""
    with open("net.py", "w", encoding="utf-8") as file:
        file.write(text)
    words = [sys.executable, *(words or ("-u", "net.py"))]
    return Job(words=words, restart=[], about="", source="net.py", alone=False, is_own=False, needs_mindspore=needs)


def chosen(asked, the_job, binding=None, **given):
    given = {"device_target": "CPU", "config": "", **given}
    return import_once.choose(request("net.py", import_once=asked, **given), the_job, binding)


# ---- what is imported ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import numpy as np\n", ["numpy"]),
        ("import os, numpy\nimport mindspore.nn as nn, numpy.random\n", ["numpy.random", "mindspore"]),
        ("import os, mindspore as ms, sys  # numpy\n", ["mindspore"]),
        (
            "from mindspore import (nn,\n    ops as o)  # x\nfrom mindspore.dataset.vision import Resize\n",
            ["mindspore.dataset.vision", "mindspore.nn", "mindspore.ops"],
        ),
        ("import numpyro\nimport mindspore_lite\nfrom mindspore2 import nn\n", []),
    ],
)
def test_what_the_program_imports_of_mindspore_and_numpy_is_imported_once(text, names):
    imports, remarks = chosen("auto", job(text=text))
    assert set(names) <= set(imports.names() if imports else [])
    assert "# numpy" not in text or imports.names() == names
    assert not imports or all(name.startswith(("numpy", "mindspore")) for name in imports.names())
    assert (imports is None) == (names == []) == bool(remarks)


def test_a_part_that_may_be_a_class_need_not_be_a_module_but_the_package_must_be_there():
    imports, _ = chosen("auto", job(text="from mindspore.dataset import GeneratorDataset\n"))
    assert imports.modules == [
        ("mindspore", True),
        ("mindspore.dataset", False),
        ("mindspore.dataset.GeneratorDataset", False),
    ]


def test_files_of_the_program_count_and_an_import_in_a_function_means_mindspore_itself(tmp_path):
    (tmp_path / "own.py").write_text("import numpy.linalg\n")
    assert chosen("auto", job(text="import own\n"))[0].names() == ["numpy", "numpy.linalg"]
    imports, _ = chosen("auto", job(text="def main():\n    import mindspore\n", needs=True))
    assert imports.modules == [("numpy", False), ("mindspore", True)]


def test_modules_of_the_user_come_first_and_alone_unless_auto_is_among_them():
    assert chosen("heavy,torch.nn", job())[0] == Imports(
        modules=[("heavy", True), ("torch.nn", True)], program="net.py", forced=False
    )
    assert chosen("heavy,auto,force", job("-u", "-m", "net"))[0] == Imports(
        modules=[("heavy", True), ("numpy", True)], program="", forced=True
    )


# ---- when the ranks cannot be forks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        ({"import_once": "a-b"}, USAGE, "--import_once=a-b: is not the name of a module"),
        ({"import_once": "a,,b"}, USAGE, "--import_once=: is not the name of a module"),
        ({"import_once": "a\x1b[2J"}, USAGE, r"--import_once=a\x1b[2J: is not"),
        ({"engine": "msrun"}, USAGE, "msrun starts the ranks"),
        ({"device_target": "Ascend"}, REFUSED, "nobody has tried it with NPUs"),
        ({"device_target": "GPU", "script_devices": ""}, REFUSED, "nobody has tried it with GPUs"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, status, said):
    with pytest.raises(Refusal) as refusal:
        import_once.check(request("net.py", **{"import_once": "auto", "device_target": "CPU", "config": "", **given}))
    assert refusal.value.status == status and said in refusal.value.lines[0]


def test_with_force_other_devices_are_tried():
    import_once.check(request("net.py", import_once="force", config=""))


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (["-c", "import numpy"], {}, "do not run a file or a module"),
        (["-E", "net.py"], {}, "the options -E of Python hide"),
        (["-uS", "net.py"], {}, "of Python hide sitecustomize"),
        (["-I", "-m", "net"], {}, "of Python hide sitecustomize"),
        (["-u", "net.py"], {"rank_folder": "1"}, "with --rank_folder each rank runs another copy"),
        (["-u", "net_{rank}.py"], {"per_rank_words": "1"}, "--per_rank_words gives each rank another program"),
    ],
)
def test_ranks_that_cannot_be_forks_import_for_themselves(words, given, said):
    imports, remarks = chosen("numpy", job(*words), **given)
    assert imports is None and said in remarks[0]
    assert remarks[0].startswith("note: --import_once: ") and remarks[0].endswith("; each rank imports for itself")


@pytest.mark.parametrize("words", [["-W", "ignore", "-u", "net.py"], ["-O", "-m", "net"], ["-X", "utf8", "net.py"]])
def test_other_options_of_python_do_not_matter(words):
    assert chosen("numpy", job(*words))[0]


def test_another_interpreter_is_not_started_as_the_parent(tmp_path):
    (tmp_path / "python3").symlink_to(sys.executable)
    the_job = job()
    the_job.words[0] = str(tmp_path / "python3")
    imports, remarks = chosen("numpy", the_job)
    assert imports is None and "python3 is not this launcher's Python" in remarks[0]


def test_ranks_with_different_numbers_of_cores_or_nodes_of_memory_have_no_parent():
    class Binding:
        cores = {0: [0], 1: [1, 2]}
        memory = {0: [0], 1: [0]}

    assert "different numbers of cores" in chosen("numpy", job(), Binding())[1][0]
    Binding.cores[0] = [0, 3]
    assert chosen("numpy", job(), Binding())[0]
    Binding.memory[1] = [1]
    assert "different NUMA nodes" in chosen("numpy", job(), Binding())[1][0]


# ---- variables that are read at the import ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('os.environ["OMP_NUM_THREADS"] = "1"', "OMP_NUM_THREADS"),
        ("os.environ [ 'GLOG_v' ]='3'", "GLOG_v"),
        ('os.putenv("DEVICE_ID", "1")', "DEVICE_ID"),
        ("environ.setdefault('OPENBLAS_NUM_THREADS', '1')", "OPENBLAS_NUM_THREADS"),
        ('os.environb[b"CUDA_HOME"] = b""', "CUDA_HOME"),
        ('if os.environ["GLOG_v"] == "3":', ""),
        ('os.environ["RANK_ID"] = "1"', ""),
        ('os.environ["CUDA_HOMES"] = "1"', ""),
        ('print(os.environ["OMP_NUM_THREADS"])', ""),
    ],
)
def test_a_program_that_sets_such_a_variable_is_found(text, name):
    assert import_once.set_in(text.encode(), import_once.beginnings(["mindspore.nn"])) == name
    imports, remarks = chosen("auto", job(text=f"import os, mindspore\n{text}\n", needs=True))
    assert (imports is None) == bool(name) and (not name or f"net.py sets {name}, which is read" in remarks[0])


def test_a_module_that_reads_none_does_not_forbid_any():
    assert chosen("heavy", job(text='import os\nos.environ["GLOG_v"] = "1"\n'))[0]


@pytest.mark.parametrize(
    ("own", "name"),
    [
        ([{b"RANK_ID": b"0", b"DEVICE_ID": b"0"}, {b"RANK_ID": b"1", b"DEVICE_ID": b"1"}], ""),
        ([{b"GLOG_log_dir": b"a/0"}, {b"GLOG_log_dir": b"a/1"}], "GLOG_log_dir"),
        ([{b"GLOG_log_dir": b"a"}, {b"GLOG_log_dir": b"a"}], ""),
        ([{b"OMP_NUM_THREADS": b"2"}, {}], "OMP_NUM_THREADS"),
        ([{b"OMPI_COMM_WORLD_RANK": b"0"}, {b"OMPI_COMM_WORLD_RANK": b"1"}], ""),
        ([{b"PYTHONHASHSEED": b"2"}, {b"PYTHONHASHSEED": b"1"}], "PYTHONHASHSEED"),
    ],
)
def test_such_a_variable_that_differs_from_rank_to_rank_is_named(own, name):
    assert import_once.differing(own, import_once.beginnings(["mindspore"])) == name


@pytest.mark.parametrize("where, name", [("0", "GLOG_logtostderr=0"), ("1", ""), ("", "")])
def test_a_log_that_mindspore_names_by_the_rank_at_its_import_is_found(where, name):
    assert import_once.names_log({b"GLOG_logtostderr": where.encode()}, ["numpy", "mindspore.nn"]) == name
    assert import_once.names_log({b"GLOG_logtostderr": where.encode()}, ["numpy"]) == ""


def test_agents_read_what_the_launcher_has_written():
    imports = Imports(modules=[("numpy", False), ("mindspore.nn", True)], program="a\n b.py", forced=True)
    assert import_once.read(imports.word()) == imports
    assert import_once.read(imports.replace(program="", forced=False).word()).program == ""
