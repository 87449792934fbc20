"""MindSpore, CANN, driver and firmware on the doctor's page."""

import re

import pytest

from tools.doctor import versions


def test_every_row_of_the_table_has_a_source_and_versions_that_can_be_compared():
    for row in versions.rows():
        assert row["source"].startswith(("https://", "mindspore/")), row
        assert row["cann"]
        for version in (row["mindspore"], *row["cann"], row["driver"] or "1.0"):
            assert re.fullmatch(r"\d+\.\d+(\.\d+)?(\.?rc\d+)?", versions.canonical(version)), version


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mindspore", "cann", "status", "part"),
    [
        ("2.9.0", "9.0.0", "ok", "go together (https://"),
        ("2.3.0", "8.0.RC2.beta1", "ok", "go together"),
        ("2.3.0", "8.0.RC1", "ok", "go together"),
        ("2.6.0-rc1", "8.1.RC1", "ok", "go together"),
        ("2.10.0", "8.5.1", "ok", "go together"),
        ("2.10.0", "8.1.RC1", "warning", "accepts CANN 8.2 or 8.3 or 8.5 or 9.0 or 9.1, not 8.1.RC1"),
        ("2.7.1", "8.5.0", "unknown", "was released with CANN 8.3.RC1; nothing is known of 8.5.0"),
        ("2.7.1", "8.3.RC1.alpha003", "unknown", "nothing is known of 8.3.RC1.alpha003"),
        ("1.8.1", "8.5.0", "unknown", "no table here names MindSpore 1.8.1"),
        ("2.9.0", "", "absent", "cannot be compared without a version of CANN"),
    ],
)
def test_mindspore_with_cann(machine, mindspore, cann, status, part):
    machine.mindspore(f"__version__ = '{mindspore}'")
    if cann:
        machine.cann(cann)
    machine.line("MindSpore with CANN", status, part)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cann", "driver", "status", "part"),
    [
        ("9.0.0", "26.0.rc1", "ok", "go together"),
        ("8.1.RC1", "25.0.rc1.1", "ok", "go together"),
        ("8.0.RC2", "24.1.rc2.b030", "ok", "go together"),
        ("8.5.0", "24.1.rc2", "unknown", "released with driver 25.5.0; nothing is known of 24.1.rc2"),
        ("8.1.RC1", "25.0.rc10", "unknown", "nothing is known of 25.0.rc10"),
        ("9.9.9", "26.0.rc1", "unknown", "no table here names a driver for CANN 9.9.9"),
        ("6.3.RC2", "23.0.rc2", "unknown", "no table here names a driver"),
        ("9.0.0", "", "unknown", "cannot be compared without a version of driver"),
    ],
)
def test_cann_with_driver(machine, cann, driver, status, part):
    machine.cann(cann)
    if driver:
        machine.driver(driver)
    machine.line("CANN with driver", status, part)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "status"), [("OK", "ok"), ("NOK", "problem"), ("UNKNOWN", "unknown"), ("NOT SUPPORT", "unknown")]
)
def test_driver_with_firmware_is_what_npu_smi_says(a3, word, status):
    a3.set("compatibility", word)
    lines, code = a3.lines()
    assert lines["driver with firmware"].status == status
    assert code == (status == "problem")


@pytest.mark.slow
def test_driver_and_firmware_are_npu_smis_where_there_is_no_version_info(a3):
    for name in ("driver", "firmware"):
        (a3.root / f"usr/local/Ascend/{name}/version.info").unlink()
    lines, _ = a3.lines()
    assert (lines["driver"].text, lines["firmware"].text) == ("25.5.0", "7.8.0.5.216")


def test_the_driver_is_where_ascend_install_info_says(machine):
    machine.file("/etc/ascend_install.info", "Driver_Install_Type=full\nDriver_Install_Path_Param=/opt/Ascend\n")
    machine.file("/opt/Ascend/driver/version.info", "Version=24.1.0\n")
    assert machine.line("driver", "ok").text == "24.1.0"


@pytest.mark.slow
def test_cann_that_is_not_active_is_a_problem_where_there_are_npus(a3, monkeypatch):
    monkeypatch.delenv("ASCEND_HOME_PATH")
    assert a3.line("CANN", "problem").remedy == "source /usr/local/Ascend/cann/set_env.sh"


@pytest.mark.slow
def test_the_older_place_of_cann(machine):
    machine.cann("8.0.0", "/usr/local/Ascend/ascend-toolkit/latest")
    assert machine.line("CANN", "ok").remedy == "source /usr/local/Ascend/ascend-toolkit/set_env.sh"


@pytest.mark.slow
def test_a_machine_with_npus_and_without_cann(a3, monkeypatch):
    monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere")
    a3.line("CANN", "problem")
    monkeypatch.delenv("ASCEND_HOME_PATH")
    (a3.root / "usr/local/Ascend/cann/aarch64-linux/ascend_toolkit_install.info").unlink()
    a3.line("CANN", "problem")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "status", "part"),
    [
        ("raise ModuleNotFoundError(\"No module named 'mindspore'\")", "problem", "has no MindSpore"),
        (
            "import sys\n__version__ = '2.9.0'\nsys.stderr.write('[WARNING] version 7.0 does not match\\n')",
            "warning",
            "2.9.0, which reports: [WARNING] version 7.0 does not match",
        ),
    ],
)
def test_what_importing_mindspore_says(machine, source, status, part):
    machine.mindspore(source)
    machine.line("MindSpore", status, part)
