"""What the wheel has in it, and what it must not have."""

import os
import re
import stat
import subprocess
import zipfile
from email import message_from_string

import documents
import installing
import pytest

from hccl_tools.common import version

pytestmark = pytest.mark.thorough

ROOT = installing.ROOT
INSIDE = {"configs", "docs", "hccl_tools", "schemas", "scripts", "tools", "__init__.py", "__main__.py"}
# Folders and files of the checkout that must come whole; what the wheel leaves out on purpose.
WHOLE = ("configs", "docs", "hccl_tools", "schemas", "scripts", "tools")
LEFT_OUT = re.compile(r"docs/pictures/|docs/[^/]*\.svg$|tools/environment\.sh$|tools/pages/")
MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel as an open archive."""
    with zipfile.ZipFile(installing.build_wheel(tmp_path_factory)) as archive:
        yield archive


@pytest.fixture(scope="module")
def metadata(wheel):
    """What pip and an index read of it."""
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_string(wheel.read(name).decode("utf-8"))


def test_it_is_for_every_python_and_every_system(wheel):
    assert os.path.basename(wheel.filename) == f"mindspore_launch-{version.number()}-py3-none-any.whl"
    said = wheel.read(f"mindspore_launch-{version.number()}.dist-info/WHEEL").decode("ascii")
    assert "Root-Is-Purelib: true\n" in said and "Tag: py3-none-any\n" in said


def test_all_of_it_is_in_one_folder(wheel):
    names = [name.split("/") for name in wheel.namelist()]
    assert {parts[0] for parts in names} == {"mindspore_launch", f"mindspore_launch-{version.number()}.dist-info"}
    assert {parts[1] for parts in names if parts[0] == "mindspore_launch"} == INSIDE


def test_it_has_every_file_that_a_launch_may_need_and_no_other(wheel):
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *WHOLE]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    wanted = {name for name in listed if not LEFT_OUT.search(name) and (ROOT / name).exists()}
    prefix = "mindspore_launch/"
    got = {name[len(prefix) :] for name in wheel.namelist() if name.startswith(prefix)}
    assert got - {"__init__.py", "__main__.py"} == wanted
    assert {"configs/diagnoses.yaml", "hccl_tools/locale/zh/LC_MESSAGES/launch.mo", "docs/kubernetes.md"} <= got
    assert not [name for name in got if re.search(r"(^|/)tests?/|\.(png|svg|gif|pyc|so)$", name)]


def test_scripts_can_be_run(wheel):
    for name in wheel.namelist():
        mode = wheel.getinfo(name).external_attr >> 16
        text = wheel.read(name)
        assert bool(mode & stat.S_IXUSR) == text.startswith(b"#!"), f"{name} has the mode {mode:o}"
        assert mode & 0o444 == 0o444, f"{name} has the mode {mode:o}: other users cannot read it"


def test_it_names_no_path_of_the_machine_that_built_it(wheel):
    home = os.path.expanduser("~").encode()
    for name in wheel.namelist():
        text = wheel.read(name)
        assert str(ROOT).encode() not in text, name
        assert home == b"/root" or home + b"/" not in text, name


def test_its_size_is_bounded(wheel):
    assert os.path.getsize(wheel.filename) < 4 * MEBIBYTE
    assert sum(each.file_size for each in wheel.infolist()) < 12 * MEBIBYTE


def test_the_metadata_promise_what_the_project_promises(metadata):
    assert metadata["Name"] == "mindspore-launch"
    assert metadata["Version"] == version.number()
    assert metadata["Requires-Python"] == ">=3.9"
    plain = [name for name in metadata.get_all("Requires-Dist") if "extra ==" not in name]
    assert [re.split("[<>=]", name)[0].lower() for name in plain] == ["jsonschema", "pyyaml", "rich"]
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_its_description_leads_to_no_file(metadata):
    """A reader of a package index has none of the files beside the README."""
    text = metadata.get_payload()
    assert "# MindSpore" in text
    addresses = [address for _, address in documents.links(text)]
    assert [address for address in addresses if not address.startswith(("https://", "#"))] == []
    assert "<!--" not in text


def test_the_image_takes_this_version(root):
    assert f"ARG VERSION={version.number()}\n" in (root / "deploy" / "Dockerfile").read_text(encoding="utf-8")
