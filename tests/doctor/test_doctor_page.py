"""The page as a whole: what is on it, what may not be, and that nothing holds it up."""

import json
import os
import re
import sys

import json_pages
import pytest

from hccl_tools.common import language
from hccl_tools.machine import npu_use, programs
from tools.doctor import main as doctor
from tools.doctor import network, npu_smi, page


def test_a_good_machine_without_npus_has_no_problem(machine):
    lines, status = machine.lines()
    assert status == 0
    assert {name for name, line in lines.items() if line.status == "problem"} == set()
    assert lines["devices"].status == "absent" and "--device_target CPU" in lines["devices"].remedy
    assert "npu-smi" not in lines
    assert lines["OS"].text == "Kylin Linux Advanced Server V10"


@pytest.mark.slow
def test_a_good_machine_with_npus_is_ok_in_every_line_about_them(a3):
    lines, status = a3.lines()
    assert status == 0
    wanted = ["MindSpore", "CANN", "driver", "firmware", "MindSpore with CANN", "CANN with driver"]
    wanted += ["driver with firmware", "devices", *(f"device {number}" for number in range(16))]
    assert {name: lines[name].status for name in wanted} == dict.fromkeys(wanted, "ok")
    assert lines["devices"].text == "0-15, A3"
    assert lines["device 3"].text == "Ascend910, health OK; address 192.168.100.4 (hccn_tool); free"


@pytest.mark.slow
def test_the_text_has_every_line_of_the_json_and_its_remedy(machine):
    _, text = machine.page()
    lines, _ = machine.lines()
    for name, line in lines.items():
        assert re.search(rf"^  {line.status} +{re.escape(name)} +", text, re.MULTILINE), name
        assert line.remedy in text
    assert text.splitlines()[-1].endswith("nothing here keeps a launch from working.")


@pytest.mark.slow
def test_a_chinese_reader_gets_the_page_in_chinese_and_the_json_in_english(machine):
    machine.monkeypatch.setenv("LAUNCH_LANG", "zh")
    language._catalogue.cache_clear()
    try:
        lines = machine.page()[1].splitlines()
        language._catalogue.cache_clear()
        in_json, _ = machine.lines()
    finally:
        language._catalogue.cache_clear()
    assert lines[0].startswith("本机报告，") and lines[2] == "系统" and lines[-1].endswith("没有妨碍启动的问题。")
    found = {line.split()[1]: line for line in lines if line.startswith("  正常 ")}
    assert page.columns(found["操作系统"].partition("Kylin")[0]) == page.columns(found["内核"].partition("Linux")[0])
    assert "memory" in in_json and all(line.text.isascii() for line in in_json.values())


def test_a_problem_is_exit_1_and_said_at_the_end(machine):
    machine.mindspore("raise ImportError('libgomp.so.1: cannot open shared object file')")
    status, text = machine.page()
    assert status == 1
    assert "libgomp.so.1: cannot open shared object file" in text
    assert text.splitlines()[-1].startswith("1 problem, ")
    assert text.endswith(": fix the problems before you launch.\n")


@pytest.mark.slow
def test_counts_and_status_of_the_json_are_those_of_its_lines(machine):
    found = json.loads(machine.page("--json")[1])
    json_pages.check("doctor.sh", found)
    assert json.loads(machine.page("--format", "json")[1]).keys() == found.keys()
    assert not machine.page("--json", "--format=text")[1].startswith("{")
    assert sum(found["counts"].values()) == len(found["lines"])
    assert found["status"] == "warning"
    assert {line["section"] for line in found["lines"]} == {section.TITLE for section in doctor.SECTIONS}


def test_no_colour_where_it_is_not_wanted():
    sections = {"One": [page.Line("name", page.PROBLEM, "text", "remedy")]}
    assert "\x1b[" in page.as_text(sections, "now", colour=True)
    assert "\x1b[" not in page.as_text(sections, "now", colour=False)


def test_a_mistake_in_one_section_or_when_npus_are_asked_leaves_the_others(machine, monkeypatch):
    monkeypatch.setattr(network, "_hccl_ports", lambda has_npus: 1 // 0)
    monkeypatch.setattr(npu_smi, "look", lambda conf: 1 // 0)
    lines, status = machine.lines()
    assert (lines["network"].status, status) == ("unknown", 0)
    assert "ZeroDivisionError" in lines["network"].text
    assert lines["npu-smi"].status == "warning" and "ZeroDivisionError" in lines["npu-smi"].text
    assert {"OS", "chrt"} <= lines.keys()


def test_a_closed_stdout_is_said(machine, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert doctor.main(["script=doctor.sh", "shell=5.2", "--"]) == 2
    assert capsys.readouterr().err == "doctor.sh: stdout is closed, and the page goes there\n"


@pytest.mark.slow
def test_the_documents_name_every_line(a3, root):
    with_npus, _ = a3.lines()
    a3.set("fault_info", "fail")
    for name in {*with_npus, *a3.lines()[0]}:
        for document in ("docs/doctor.md", "docs/zh/doctor.md"):
            text = (root / document).read_text()
            assert f"`{re.sub('[0-9]+', 'N', name)}`" in text, (document, name)


# ---- what the page may not say ---------------------------------------------------------------------


@pytest.mark.slow
def test_the_environment_and_the_home_folder_are_not_in_the_page(a3, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "hunter2hunter2")
    a3.mindspore(f"raise ImportError('{os.path.expanduser('~')}/lib/x.so: no such file')")
    for arguments in (["--log_dir", os.path.expanduser("~/logs")], ["--format", "json"]):
        _, text = a3.page(*arguments)
        assert "hunter2" not in text and "alice" not in text
        assert "~/lib/x.so: no such file" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("address 192.168.1.2 (hccn_tool)", "address 192.168.1.2 (hccn_tool)"),
        ("10.0.0.1, 172.16.3.4 and 127.0.1.1", "10.0.0.1, 172.16.3.4 and 127.0.1.1"),
        ("a has 29.1.137.205; b", "a has 29.1.*.*; b"),
        ("2409:8c00:1::5 here", "2409:8c00:* here"),
        ("fd00::1 here", "fd00::1 here"),
        ("0000:9D:00.0 and 12 and 8.5.0", "0000:9D:00.0 and 12 and 8.5.0"),
    ],
)
def test_addresses_of_the_public_internet_are_hidden(text, shown):
    assert page.masked(text) == shown


@pytest.mark.slow
def test_a_public_address_of_a_card_is_hidden(a3, cards):
    cards.set({device: f"29.1.137.{device + 1}" for device in range(16)})
    _, text = a3.page()
    assert "29.1.137" not in text
    assert "address 29.1.*.* (hccn_tool)" in text


# ---- nothing hangs ---------------------------------------------------------------------------------


@pytest.mark.thorough
def test_tools_that_hang_cost_one_limit_and_say_so(a3, monkeypatch):
    monkeypatch.setattr(doctor, "SECONDS", 1)
    monkeypatch.setattr(npu_use, "SECONDS", 1)
    a3.set("fault_info", "hang")
    for name in ("mpirun", "srun", "ssh", "getent", "chrt", "py-spy", "git"):
        a3.tool(name, "exec sleep 30")
    lines, _ = a3.lines()
    assert lines["npu-smi"].text == "npu-smi info: no answer within 1 s"
    for name in ("Open MPI", "Slurm", "ssh", "chrt", "py-spy", "host name", "launcher"):
        assert "no answer within 1 s" in lines[name].text, name
    assert lines["device 0"].text.startswith("health unknown; address 192.168.100.1")


@pytest.mark.slow
def test_all_programs_are_asked_at_the_same_time(machine, monkeypatch):
    calls = []
    monkeypatch.setattr(programs, "ask_all", lambda commands, seconds, real=programs.ask_all: (
        calls.append(sorted(commands)), real(commands, seconds))[1])  # fmt: skip
    machine.lines()
    assert len(calls) == 1
    assert {"mindspore", "mpirun", "srun", "ssh", "chrt", "py-spy", "name", "git", "logs"} <= set(calls[0])
