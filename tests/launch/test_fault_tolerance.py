"""MS_ENABLE_TFT and its relatives: what cannot work is refused before the start, what nobody expects is told."""

import pytest
from launching import request

from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from tools.launch import checks
from tools.launch.engines import fault_tolerance

NAMES = ("MS_ENABLE_TFT", "MS_ENABLE_THM", "MINDIO_FOR_MINDSPORE", "MS_TFT_PORT", "MS_TFT_IP")
GOOD = {"MS_TFT_PORT": "30051", "MS_TFT_IP": "10.0.0.1", "MINDIO_FOR_MINDSPORE": "1"}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """The packages that the ranks' Python finds; none of the variables is set."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    found = {"mindio_ttp", "taskd"}
    monkeypatch.setattr(fault_tolerance, "_is_there", found.__contains__)
    return found


@pytest.fixture
def checked(monkeypatch):
    """checked(TFT, engine=..., variable=...): the remarks."""

    def check(tft="", engine="msrun", target="Ascend", no_check="", max_restarts="0", **variables):
        for name, value in {**GOOD, "MS_ENABLE_TFT": tft, **variables}.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)
        given = {"engine": engine, "device_target": target, "no_check": no_check, "max_restarts": max_restarts}
        return checks.fault_tolerance(request(**given))

    return check


def refused(checked, status, *parts, **given):
    with pytest.raises(Refusal) as error:
        checked(**given)
    assert error.value.status == status
    assert [part for part in parts if part not in str(error.value)] == []


@pytest.mark.parametrize("tft", ["{TTP:1,UCE:1,HCCE:1,ARF:1}", "{RSC:1}", "{TTP:1 UCE:1}", "TTP:1", "{TRE:1}", ""])
def test_what_works_has_no_remark(checked, tft):
    mindio = {} if tft else {"MINDIO_FOR_MINDSPORE": None}
    assert checked(tft, **mindio) == []


@pytest.mark.parametrize("value", ["TTP", "{TTP:1,ARF}", "{TTP:1, ,ARF:1}", "on\x1b[2J"])
def test_what_kills_every_import_of_mindspore_is_refused(checked, value):
    refused(checked, REFUSED, "MindSpore cannot be imported", "no colon", tft=value, target="CPU", engine="local")
    with pytest.raises(Refusal) as error:
        checked("", MS_ENABLE_THM=value)
    assert "MS_ENABLE_THM" in str(error.value) and "\x1b" not in str(error.value)


def test_the_file_of_hccls_status_must_be_there(checked, tmp_path):
    named = f"{{HCCL_STATUS_SAVE_CONFIG:{tmp_path}/status.json}}"
    refused(checked, REFUSED, "status.json: No such file", MS_ENABLE_THM=named)
    (tmp_path / "status.json").write_text("[1]")
    refused(checked, REFUSED, "it is not a JSON object", MS_ENABLE_THM=named)
    (tmp_path / "status.json").write_text("{")
    refused(checked, REFUSED, "MindSpore cannot be imported", MS_ENABLE_THM=named)
    (tmp_path / "status.json").write_text('{"HCCL_STATUS_SAVE_PATH": "/tmp"}')
    assert checked("{TTP:1}", MS_ENABLE_THM=named) == []
    refused(checked, REFUSED, "HCCL_STATUS_SAVE_CONFIG:FILE is missing", MS_ENABLE_THM="{HCCL_STATUS_SAVE:1}")


@pytest.mark.parametrize("port", ["", "x", "0", "65536", "3.5", "-1", "٣"])
def test_a_port_that_mindspore_cannot_read_is_refused(checked, port):
    refused(checked, REFUSED, "MS_TFT_PORT", "is not a number from 1 to 65535", tft="{TTP:1}", MS_TFT_PORT=port)


def test_what_mindio_lacks_is_named_at_once(checked, installed):
    installed.clear()
    missing = {"MS_TFT_PORT": None, "MINDIO_FOR_MINDSPORE": None}
    parts = ("MS_TFT_PORT is not set", "export MINDIO_FOR_MINDSPORE=1", "no package mindio_ttp")
    refused(checked, REFUSED, *parts, tft="{UCE:1}", **missing)
    assert checked("{UCE:1}", target="CPU", **missing) == []  # MindIO is for Ascend
    assert checked("{UCE:1}", no_check="1", **missing) == []
    assert checked("{TRE:1}", **missing) == []  # which needs none of it


def test_ato_is_for_itself(checked):
    refused(checked, REFUSED, "ATO:1 only alone", "ARF, TTP", tft="{ATO:1,TTP:1,ARF:1}")
    assert checked("{ATO:1}") == []


def test_our_restarts_and_taskds_do_not_fight(checked, installed):
    refused(checked, USAGE, "--max_restarts", "TaskD", tft="{RSC:1}", max_restarts="3")
    assert checked("{RSC:1}", max_restarts="3", engine="srun") != []
    installed.discard("taskd")
    (remark,) = checked("{ARF:1}", max_restarts="3")
    assert "no package taskd" in remark
    (remark,) = checked("{TTP:1}", max_restarts="3")  # MindIO alone starts nothing
    assert "--keep_going" in remark


@pytest.mark.parametrize(
    ("given", "remark"),
    [
        ({"tft": "{ARF:1}", "MS_ENABLE_THM": "{HCCL_WATCHDOG:1}"}, "ARF turns HCCL's watchdog off"),
        ({"tft": "{ARF:1,TRE:1}"}, "TRE does not work together"),
        ({"tft": "{ARF:1}", "engine": "local"}, "only msrun lets TaskD restart a rank"),
        ({"tft": "{TTP:1}", "engine": "mpirun"}, "--keep_going lets them save first"),
        ({"tft": "{TTP: 1}"}, "looks for TTP:1 without blanks"),
        ({"tft": "{arf:1}"}, "write ARF:1"),
        ({"tft": ""}, "MINDIO_FOR_MINDSPORE turns nothing on"),
    ],
)
def test_what_nobody_expects_is_told(checked, given, remark):
    told = checked(**given)
    assert len([line for line in told if remark in line]) == 1, told
    assert all(line.startswith("note: ") for line in told)


def test_mindspore_reads_the_variables_as_this_does():
    """What this project relies on, in the installed MindSpore."""
    utils = pytest.importorskip("importlib.util").find_spec("mindspore")
    if utils is None:
        pytest.skip("needs MindSpore")
    folder = utils.submodule_search_locations[0]
    with open(f"{folder}/utils/utils.py", encoding="utf-8") as file:
        text = file.read()
    for fact in (
        "ENABLE_MINDX = ['TTP:1', 'UCE:1', 'ARF:1', 'TSP:1', 'HCCE:1', 'RSC:1']",
        'NEED_MINDIO = ["TTP:1", "UCE:1", "ARF:1", "TSP:1", "HCCE:1"]',
        'int(os.getenv("MS_TFT_PORT"))',
        "key_v[1].strip()",
        "from taskd.api.taskd_agent_api import init_taskd_agent, start_taskd_agent, register_func",
    ):
        assert fact in text, fact
