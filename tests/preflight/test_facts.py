"""What a host says of itself: with simulated NPUs, with files of a test, and with secrets in its environment."""

import contextlib
import os
import py_compile
import random
import socket
import subprocess
import sys

import pytest
from suite.cases import eventually

from hccl_tools.common.refusal import Refusal
from hccl_tools.machine import distributions, host
from tools.preflight import probe, program_files, question
from tools.preflight.catalog.rows import COLLECTORS, knows
from tools.preflight.facts import files, network, npus, system
from tools.preflight.question import Place, Question


def asked(here, **more):
    """A Question to one of two hosts."""
    return Question(**{"host": "a", "hosts": 2, "first": "a", "folder": str(here), "log_dir": f"{here}/logs", **more})


@pytest.fixture
def smi(world, cards, tmp_path, monkeypatch, root):
    """set("health_3", "Alarm"): a simulated host with 16 NPUs, by npu-smi and hccn_tool."""
    folder = tmp_path / "smi"
    folder.mkdir()
    (tmp_path / "programs" / "npu-smi").symlink_to(root / "tests" / "fixtures" / "bin" / "npu-smi")
    monkeypatch.setenv("NPU_SIM", str(folder))
    monkeypatch.setattr(host, "nodes", lambda: [])
    return lambda name, text: (folder / name).write_text(text + "\n")


def test_every_collector_gives_facts_of_the_catalogue(tmp_path):
    assert {*probe.COLLECTORS, "links"} == set(COLLECTORS)
    for name, (collect, _) in probe.COLLECTORS.items():
        found = collect(asked(tmp_path, data=str(tmp_path), modules=["yaml", "no_such_module"]))
        assert [key for key in found if not knows(key)] == [], name
    assert probe.facts(asked(tmp_path))["failed"] == {}


def test_a_question_arrives_as_it_was_sent(tmp_path):
    for place in (None, Place(names=["a"], devices={"0": "10.0.0.1"})):
        sent = asked(tmp_path, place=place, files={"/x": "0123"})
        assert question.read(sent.as_json()) == sent


# ---- NPUs ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_healthy_npus_are_not_a_word(smi, tmp_path):
    found = npus.collect(asked(tmp_path))
    assert found["devices"] == "0-15" and (found["driver"], found["tls"]) == ("25.5.0", "0")
    named = {key: value for key, value in found.items() if key not in ("devices", "driver", "tls", "hccp")}
    assert not any(named.values()), named


@pytest.mark.slow
def test_each_fault_of_an_npu_is_said(smi, cards, tmp_path):
    for name, text in (
        *(("health_3", "Alarm"), ("health_4", "Warning"), ("held_5", "4711 3000 python"), ("ecc_6", "2")),
        ("temp_7", "97"),
    ):
        smi(name, text)
    (cards.folder / "link_8").write_text("DOWN\n")
    with open(cards.folder / "hccn.conf", "a", encoding="utf-8") as conf:
        conf.write("tls_enable_9=1\n")
    found = npus.collect(asked(tmp_path))
    assert found["ill"] == ["3: Alarm"] and found["ailing"] == ["4: Warning"]
    assert found["held"] == ["5: python (pid 4711, 3000 MB)"]
    assert (found["memory_errors"], found["hot"]) == (["6: 2"], ["7: 97 C"])
    assert (found["link_down"], found["tls"]) == (["8"], "0, 1")


@pytest.mark.slow
def test_only_the_devices_that_the_ranks_use_count(smi, tmp_path):
    smi("health_3", "Alarm")
    assert npus.collect(asked(tmp_path, devices=[0, 1]))["ill"] == []
    assert npus.collect(asked(tmp_path, devices=[0, 17]))["short_of"] == ["17"]
    assert npus.collect(asked(tmp_path, slots=16))["short_of"] == []
    assert npus.collect(asked(tmp_path, slots=17))["short_of"] == ["16 < 17"]


def test_a_host_without_npus_that_has_gpus_lacks_none(smi, tmp_path, monkeypatch):
    monkeypatch.setattr(host, "devices", list)
    assert npus.collect(asked(tmp_path, devices=[0]))["short_of"] == ["0"]
    monkeypatch.setattr(host, "gpu_nodes", lambda: [0])
    assert npus.collect(asked(tmp_path, devices=[0]))["short_of"] == []


@pytest.mark.slow
def test_npu_smi_that_does_not_work_is_said_and_the_rest_is_not_made_up(smi, tmp_path):
    smi("fault_info", "fail")
    found = npus.collect(asked(tmp_path))
    assert "-8005" in found["npu_smi"]
    assert not {"ill", "held", "hot", "memory_errors"} & set(found)


@pytest.mark.slow
def test_one_host_needs_no_network_and_the_quick_facts_ask_no_program(smi, tmp_path, programs_run):
    assert "link_down" not in npus.collect(asked(tmp_path, hosts=1))
    programs_run.clear()
    assert npus.collect(asked(tmp_path, quick=True)) == {"devices": None, "short_of": []}
    assert programs_run == []


def test_a_table_is_compared_with_the_addresses_and_devices_of_the_host(smi, tmp_path):
    place = Place(names=["127.0.0.1"], devices={"0": "192.168.100.1", "1": "10.9.9.9", "16": "1.1.1.1"})
    found = npus.collect_table(asked(tmp_path, place=place))
    assert found == {
        "table_server": True,
        "table_devices": ["16"],
        "table_addresses": ["1: 192.168.100.2 != 10.9.9.9"],
    }
    assert npus.collect_table(asked(tmp_path, place=Place(names=["10.99.99.99"], devices={})))["table_server"] is False
    assert npus.collect_table(asked(tmp_path)) == {}


# ---- files and variables -------------------------------------------------------------------------------------------


def test_only_files_that_are_not_as_on_the_asking_host_are_facts(tmp_path):
    (tmp_path / "a.py").write_text("a")
    (tmp_path / "b.py").write_text("b")
    here = {f"{tmp_path}/{name}.py": files.digest(f"{tmp_path}/{name}.py") for name in "ab"}
    (tmp_path / "b.py").write_text("other")
    found = files.collect(asked(tmp_path, files={**here, f"{tmp_path}/c.py": "0123", "/dev/zero": "4567"}))
    assert found.pop(f"file:{tmp_path}/b.py") not in (None, here[f"{tmp_path}/b.py"])
    assert found == {f"file:{tmp_path}/c.py": None, "file:/dev/zero": None, "more_files": None}


def test_many_files_that_differ_have_one_digest_together(tmp_path):
    many = {f"/no/{n}": "0123" for n in range(50)}
    found = files.collect(asked(tmp_path, files=many))
    assert len(found) == 21 and found["more_files"]
    assert files.collect(asked(tmp_path, files={**many, "/no/x": "0123"}))["more_files"] != found["more_files"]


def test_the_data_is_there_and_as_much_as_elsewhere(tmp_path):
    assert files.collect_data(asked(tmp_path)) == {}
    assert files.collect_data(asked(tmp_path, data=f"{tmp_path}/none")) == {"data": False}
    (tmp_path / "d").mkdir()
    for name in ("x", "y", ".cache"):
        (tmp_path / "d" / name).write_text("12345")
    assert files.collect_data(asked(tmp_path, data=f"{tmp_path}/d")) == {"data": True, "data_entries": 2}
    assert files.collect_data(asked(tmp_path, data=f"{tmp_path}/d/x")) == {"data": True, "data_bytes": 5}


def test_variables_that_are_set_only_there_are_facts_and_secrets_are_digests(tmp_path, monkeypatch):
    for name in files.watched(os.environ):
        monkeypatch.delenv(name)
    secret = "hunter2-hunter2"
    for name, value in {
        "HCCL_A": "1",
        "MS_API_KEY": secret,
        "GLOG_v": "x" * 500,
        "HOME_B": "2",
        "HCCL_SET": "3",
    }.items():
        monkeypatch.setenv(name, value)
    found = files.collect_environment(asked(tmp_path, set_here=["HCCL_SET"], salt="s"))
    assert set(found) == {"variable:HCCL_A", "variable:MS_API_KEY", "variable:GLOG_v"}
    assert found["variable:HCCL_A"] == "1" and len(found["variable:GLOG_v"]) < 200
    assert secret not in str(found)
    again = files.collect_environment(asked(tmp_path, set_here=["HCCL_SET"], salt="t"))
    assert again["variable:MS_API_KEY"] != found["variable:MS_API_KEY"]  # of no use in another check
    monkeypatch.setenv("MS_API_KEY", secret + "!")
    changed = files.collect_environment(asked(tmp_path, salt="s"))
    assert changed["variable:MS_API_KEY"] != found["variable:MS_API_KEY"]


def test_the_program_is_all_files_that_it_imports_of_its_own_and_what_is_installed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "__init__.py").write_text("from . import layers\n")
    (tmp_path / "net" / "layers.py").write_text("import numpy as np\n")
    (tmp_path / "train.py").write_text(
        "import os, json, mindspore\nimport net\ndef f():\n    from yaml.loader import x\n"
    )
    (tmp_path / "c.yaml").write_text("a: 1\n")
    found = program_files.of("train.py", "c.yaml")
    assert sorted(os.path.relpath(path) for path in found.files) == [
        "c.yaml",
        "net/__init__.py",
        "net/layers.py",
        "train.py",
    ]
    assert found.modules == ["numpy", "yaml"]
    assert program_files.of("", "") == ({}, [])
    with pytest.raises(Refusal, match="no.py cannot be read"):
        program_files.of("no.py", "")


@pytest.mark.parametrize("source", [b"import (\n", b"\0", b"(" * 5000, b"import caf\xe9\n"])
def test_a_program_that_is_not_python_has_no_modules_and_no_traceback(tmp_path, source):
    (tmp_path / "x.py").write_bytes(source)
    assert program_files.of(f"{tmp_path}/x.py", "").modules == []


# ---- the machine ---------------------------------------------------------------------------------------------------


def test_packages_have_the_version_of_their_distribution(tmp_path):
    found = system.collect_software(asked(tmp_path, modules=["pytest", "yaml", "no_such_module", "tools", "../x"]))
    assert found["package:pytest"] == pytest.__version__
    assert found["package:yaml"].startswith("PyYAML ")
    assert found["package:no_such_module"] is None and found["package:../x"] is None
    assert found["package:tools"] == system.WITHOUT_VERSION


def test_packages_that_every_start_compiles_are_named_with_their_folders(tmp_path, monkeypatch):
    for name in ("compiled", "sources"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    py_compile.compile(f"{tmp_path}/compiled/__init__.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(distributions, "OF_RANKS", ("compiled",))
    question = asked(tmp_path, modules=["sources", "no_such_module", "../sources"])
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert system.collect_bytecode(question) == {"uncompiled": [f"sources ({tmp_path}/sources)"]}
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE")
    assert system.collect_bytecode(question) == {"uncompiled": []}  # the next start writes them


def test_cann_is_that_of_the_folder_that_the_launch_names(tmp_path):
    folder = tmp_path / "cann" / "aarch64-linux"
    folder.mkdir(parents=True)
    (folder / "ascend_toolkit_install.info").write_text("version=8.2.RC1\n")
    assert system.collect_software(asked(tmp_path, cann=f"{tmp_path}/cann"))["cann"] == "8.2.RC1"
    assert system.collect_software(asked(tmp_path, cann=f"{tmp_path}/none"))["cann"] is None


def test_a_log_folder_that_does_not_exist_is_judged_by_where_it_would_be(tmp_path):
    found = files.collect_log_folder(asked(tmp_path, log_dir=f"{tmp_path}/a/b/c"))
    assert found["logs_writable"] is True and found["folder"] is True
    assert found["logs_place"] == files.place(str(tmp_path)) != files.place("/proc")
    assert files.collect_log_folder(asked(f"{tmp_path}/none"))["folder"] is False


def test_a_port_of_the_job_on_which_something_listens_is_said_on_the_first_host_only(tmp_path):
    with socket.socket() as server:
        while not server.getsockname()[1]:
            with contextlib.suppress(OSError):  # somebody has it
                server.bind(("127.0.0.1", random.randrange(20000, 32000)))  # none that the kernel gives to others
        server.listen()
        port = server.getsockname()[1]
        assert network.collect(asked(tmp_path, ports=[port]))["busy_ports"] == [str(port)]
        assert network.collect(asked(tmp_path, ports=[port], first="b"))["busy_ports"] == []
    # a busy kernel was seen to list a closed socket for a moment
    eventually(lambda: network.collect(asked(tmp_path, ports=[port]))["busy_ports"] == [])


def test_a_first_host_without_an_address_is_said_by_the_others(tmp_path):
    found = network.collect(asked(tmp_path, first="no-such-host.invalid"))
    assert found["first_address"] is None
    assert "first_address" not in network.collect(asked(tmp_path))


def test_limits_clock_and_machine_are_numbers_that_can_be_compared(tmp_path):
    found = {
        **system.collect_limits(asked(tmp_path)),
        **system.collect_clock(asked(tmp_path)),
        **system.collect(asked(tmp_path)),
    }
    assert found["memory"] >= found["memory_free"] > 0 and found["cpus"] > 0
    assert len(found["time_zone"]) == 5 and isinstance(found["clock_kept"], bool)
    assert found["open_files"] is None or found["open_files"] > 0


# ---- packages ------------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path):
    """A function: writes metadata into a folder; returns the version that is found for a name."""

    def write(name, text):
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write("PyYAML-6.0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: PyYAML\nVersion: 6.0.1\n\nVersion: 9\n")
    write("opencv_python-4.9.0.dist-info/METADATA", "Name: opencv-python\nVersion: 4.9.0\n")
    write("opencv_python-4.9.0.dist-info/top_level.txt", "cv2\n")
    write("old_one-1.2-py3.9.egg-info", "Name: old-one\nVersion: 1.2\n")
    write("easy-3.0-py3.9.egg/EGG-INFO/PKG-INFO", "Name: easy\nVersion: 3.0\n")
    write("nameless-1.0.dist-info/METADATA", "Summary: x\n")
    write("mindspore-2.5.0.dist-info/RECORD", "")  # what an old installation left
    site = str(tmp_path / "site")
    found = distributions.Distributions(["/no/such/folder", site, f"{site}/easy-3.0-py3.9.egg"])
    return write, found


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("pyyaml", ("PyYAML", "6.0.1")),
        ("opencv-python", ("opencv-python", "4.9.0")),
        ("Old.One", ("old-one", "1.2")),
        ("easy", ("easy", "3.0")),
        ("nameless", ("nameless", "")),
        ("mindspore", None),
        ("cv2", None),
        ("../x", None),
    ],
)
def test_a_distribution_is_found_by_its_metadata_and_leftovers_without_any_are_none(installed, name, version):
    assert installed[1].find(name) == version


def test_a_module_has_the_distribution_that_names_it(installed):
    assert installed[1].owners(["cv2", "numpy"]) == {"cv2": ("opencv-python", "4.9.0")}


def test_what_is_left_of_an_old_version_does_not_hide_the_new_one(installed, tmp_path):
    installed[0]("mindspore-2.6.0.dist-info/METADATA", "Name: mindspore\nVersion: 2.6.0\n")
    assert distributions.Distributions([str(tmp_path / "site")]).find("mindspore") == ("mindspore", "2.6.0")


@pytest.mark.parametrize(
    ("name", "version"), [("pyyaml", "6.0.1"), ("mindspore", "2.6.0"), ("easy_install", "1.0"), ("x", "")]
)
def test_another_python_is_asked_for_the_version_in_one_line(installed, tmp_path, name, version):
    installed[0]("mindspore-2.6.0.dist-info/METADATA", "Name: mindspore\nVersion: 2.6.0\n")
    installed[0]("easy_install.egg-info/PKG-INFO", "Name: easy_install\nVersion: 1.0\n")
    words = [sys.executable, "-S", "-c", distributions.question(name)]
    path = os.pathsep.join(["/no/such/folder", str(tmp_path / "site")])
    said = subprocess.run(words, env={"PYTHONPATH": path}, capture_output=True, text=True, check=True)
    assert said.stdout.split() == version.split() and "\n" not in words[-1]


def test_a_folder_without_code_is_no_module(tmp_path, monkeypatch):
    for folder in ("left_over/__pycache__", "left_over/lib", "name_space/part"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "left_over" / "__pycache__" / "x.cpython-311.pyc").write_text("")
    (tmp_path / "left_over" / "lib" / "kernel.json").write_text("")
    (tmp_path / "name_space" / "part" / "x.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = system.collect_software(asked(tmp_path, modules=["left_over", "name_space"]))
    assert found["package:left_over"] is None and found["package:name_space"] == system.WITHOUT_VERSION


@pytest.mark.slow
def test_this_environment_has_the_versions_that_pip_says(tmp_path):
    from importlib import metadata

    found = distributions.Distributions()
    for distribution in metadata.distributions():
        assert found.find(distribution.metadata["Name"])[1] == metadata.version(distribution.metadata["Name"])
