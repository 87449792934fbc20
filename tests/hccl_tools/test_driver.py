"""hccn_tool and npu-smi: where they are found, and which remedy fits which failure."""

import os
import stat

import pytest

from hccl_tools.machine import driver, hccn, host, system_files
from hccl_tools.machine.programs import Ended


@pytest.fixture
def installed(world, tmp_path, monkeypatch):
    """The driver is installed in a folder that /etc/ascend_install.info names; its tools are not on PATH."""
    info = tmp_path / "ascend_install.info"
    info.write_text(f"UserName=train\nUserGroup=trainers\nDriver_Install_Path_Param={tmp_path}/opt/\n")
    monkeypatch.setattr(driver, "INSTALL_INFO", str(info))
    monkeypatch.setattr(driver, "DEFAULT_ROOT", str(tmp_path / "default"))
    tools = tmp_path / "opt" / "driver" / "tools"
    tools.mkdir(parents=True)
    return tools


def put(folder, root, name):
    (folder / name).symlink_to(root / "tests" / "fixtures" / "bin" / name)


def simulated(tmp_path, monkeypatch):
    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "hccn.conf").write_text("address_0=10.0.0.1\n")
    (cards / "devices").write_text("2\n")
    monkeypatch.setenv("HCCN_SIM", str(cards))
    monkeypatch.setenv("NPU_SIM", str(cards))


def test_hccn_tool_is_found_in_its_own_folder_and_that_is_said(installed, root, tmp_path, monkeypatch):
    put(installed, root, "hccn_tool")
    simulated(tmp_path, monkeypatch)
    found, source = hccn.addresses([0], str(tmp_path / "no.conf"))
    assert found == {0: "10.0.0.1"}
    assert source == f"hccn_tool in {installed}, which is not on PATH"


def test_npu_smi_is_found_in_its_own_folder(installed, root, tmp_path, monkeypatch):
    put(installed, root, "npu-smi")
    simulated(tmp_path, monkeypatch)
    monkeypatch.setattr(host, "nodes", list)
    assert host.devices() == [0, 1]


def test_the_one_on_path_comes_first(installed, root, tmp_path):
    put(installed, root, "hccn_tool")
    put(tmp_path / "programs", root, "hccn_tool")
    assert driver.find("hccn_tool") == driver.source("hccn_tool") == "hccn_tool"


@pytest.mark.parametrize(
    "text",
    ["UserGroup=\n", "UserGroup = \nOther=x\n", "\n" * 60_000, " " * 60_000, f"UserGroup={' ' * 60_000}\n"],
    ids=["empty", "next", "lines", "blanks", "value"],
)
def test_a_setting_without_a_value_has_the_usual_one(installed, tmp_path, text):
    (tmp_path / "ascend_install.info").write_text(text)
    assert driver.setting("UserGroup", "usual") == "usual"
    assert not system_files.value(str(tmp_path / "ascend_install.info"), "UserGroup")


def test_blanks_and_quotes_around_a_setting_do_not_count(installed, tmp_path):
    (tmp_path / "ascend_install.info").write_text('A=1\r\n\t usergroup = "trainers" \r\n')
    assert driver.setting("UserGroup", "usual") == "trainers"


@pytest.mark.parametrize("text", ["", "Driver_Install_Path_Param=relative\n", "Driver_Install_Path_Param=/a\x07b\n"])
def test_without_a_good_folder_in_the_file_the_usual_one_counts(installed, tmp_path, text):
    (tmp_path / "ascend_install.info").write_text(text)
    assert driver.root() == str(tmp_path / "default")


def test_a_program_that_is_nowhere(installed):
    why, remedy = driver.missing("hccn_tool")
    assert why.startswith(f"hccn_tool is not on PATH, and not in {installed} or ")
    assert "install the driver" in remedy and f"mount {installed} of the host" in remedy


def test_a_program_that_this_user_may_not_run(installed, root):
    (installed / "hccn_tool").write_text("")
    assert driver.find("hccn_tool") is None
    why, remedy = driver.missing("hccn_tool")
    assert why == f"this user may not run {installed}/hccn_tool"
    assert remedy == "run it as root, or as a member of the group trainers"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into every folder")
def test_a_folder_that_this_user_may_not_look_into(installed):
    installed.chmod(0)
    try:
        assert driver.missing("hccn_tool")[0].startswith(f"this user may not look into {installed}")
    finally:
        installed.chmod(stat.S_IRWXU)


@pytest.mark.parametrize(
    ("ended", "remedy"),
    [
        (Ended(12, "", "permission denied: pls check this cmd run permission."), "run it as root"),
        (Ended(127, "", "Permission denied"), "run it as root"),
        (
            Ended(
                127, "", "hccn_tool: error while loading shared libraries: libdrvdsmi_host.so: cannot open shared ..."
            ),
            "export LD_LIBRARY_PATH=",
        ),
        (Ended(124, "", "no answer within 20 s"), "the driver does not answer"),
        (
            Ended(
                255,
                "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module initialize failed. ret is -8005",
                "",
            ),
            "usually another container has the device",
        ),
        (
            Ended(255, "dcmi model initialized failed, because the device is used. ret is -8020", ""),
            "another container or process has the device",
        ),
        (Ended(4, "", "The device is not exist!"), "there is no such device here"),
        (Ended(11, "hccn_tool is busy, please try again.", ""), "it is busy"),
        (Ended(13, "The command is not supported on this product.", ""), "this product, or this container"),
        (Ended(-11, "", ""), "check the driver: npu-smi info"),
        (Ended(1, "error: something went wrong", ""), "check the driver: npu-smi info"),
    ],
)
def test_the_remedy_fits_the_cause(installed, ended, remedy):
    assert driver.remedy_for(ended).startswith(remedy) or remedy in driver.remedy_for(ended)


def test_the_line_that_tells_the_cause_is_quoted(installed):
    ended = Ended(255, "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module ... ret is -8005\n", "")
    assert driver.telling(ended) == (255, "", "dcmi module ... ret is -8005")
    assert driver.telling(Ended(1, "one\ntwo\n", "")) == (1, "one\ntwo\n", "")


def test_the_libraries_are_those_of_this_installation(installed, tmp_path):
    said = driver.remedy("error while loading shared libraries: libdrvdsmi_host.so")
    assert f"LD_LIBRARY_PATH={tmp_path}/opt/driver/lib64/driver:{tmp_path}/opt/driver/lib64/common:" in said


@pytest.mark.parametrize(
    ("word", "remedy"),
    [
        ("denied", "run it as root, or as a member of the group"),
        ("absent", "there is no such device"),
        ("hang", "see dmesg"),
    ],
)
def test_where_hccn_tool_fails_nobody_is_told_to_put_it_on_path(cards, world, monkeypatch, word, remedy):
    monkeypatch.setattr(hccn, "_SECONDS", 1)
    cards.fault(0, word)
    with pytest.raises(hccn.AddressError) as error:
        hccn.addresses([0], str(world / "no.conf"))
    text = str(error.value)
    assert "hccn_tool failed for device 0" in text and remedy in text and "behind --hccn_conf" in text
    assert "PATH" not in text


def test_check_network_gives_the_remedy_of_the_cause(cards):
    from hccl_tools.hosts import cards as asked
    from hccl_tools.hosts import cards_judge
    from hccl_tools.table.rank_table import Device

    cards.fault(0, "denied")
    (card,) = asked.ask([asked.Question(device=0, partner=None, pings=[])]).values()
    device = Device(device_id="0", device_ip="10.0.0.1", rank_id="0", pointer="/x")
    found = list(cards_judge._of_device(device, card, None, None))
    assert found and all("run it as root" in remedy for check, _, _, remedy in found if check == "link")
