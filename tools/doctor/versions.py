"""The versions of MindSpore, CANN, driver and firmware, and whether they were released for one another."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from typing import TypedDict

from hccl_tools.common import project
from hccl_tools.common.language import marked, tr
from hccl_tools.machine import driver
from hccl_tools.machine.driver import DEFAULT_ROOT, root
from hccl_tools.machine.programs import Ended
from tools.doctor import files, page
from tools.doctor.npu_smi import Npus
from tools.doctor.page import ABSENT, OK, PROBLEM, UNKNOWN, WARNING, Facts, Line, Options

TITLE = marked("Versions")

# del: as for a trainer, the current folder is not where modules come from.
_IMPORT = """import sys; del sys.path[0]
import mindspore
from importlib.metadata import version
print("version", getattr(mindspore, "__version__", None) or version("mindspore"))"""


class Released(TypedDict, total=False):
    """Versions that were released for one another; versions.json states what the keys mean."""

    mindspore: str
    cann: list[str]
    driver: str | None
    accepts: bool
    source: str


def questions(_: Options) -> dict[str, list[str]]:
    """The command that imports MindSpore: an installed MindSpore may still fail to import."""
    return {"mindspore": [sys.executable, "-c", _IMPORT]}


def lines(facts: Facts) -> list[Line]:
    """The versions, then each against the next."""
    npus, smi = facts.npus, facts.npus.smi
    mindspore, line = _mindspore(facts.answers["mindspore"])
    cann, cann_line = _cann(bool(npus.devices))
    driver = files.setting(f"{root()}/driver/version.info", "Version") or smi.driver
    firmware = files.setting(f"{root()}/firmware/version.info", "Version") or smi.board.get("Firmware Version")
    verdict = smi.board.get("Compatibility")
    return [
        line,
        cann_line,
        _ascend("driver", driver, npus),
        _ascend("firmware", firmware, npus),
        _compared({"MindSpore": mindspore, "CANN": cann}, _mindspore_with_cann),
        _compared({"CANN": cann, "driver": driver}, _cann_with_driver),
        _compared({"driver": driver, "firmware": firmware}, partial(_driver_with_firmware, verdict=verdict)),
    ]


# ---- what is here ----------------------------------------------------------------------------------


def _mindspore(ended: Ended) -> tuple[str | None, Line]:
    """The version, and the Line about it."""
    found = re.search(r"^version (\S+)$", ended.stdout, re.MULTILINE)
    if ended.status == 0 and found:
        told = re.search(r"^.*does not match.*$", ended.stderr + ended.stdout, re.MULTILINE)
        if told:  # what its own check of CANN reports
            text = tr("{version}, which reports: {text}", version=found[1], text=told[0].strip())
            return found[1], Line("MindSpore", WARNING, text)
        return found[1], Line("MindSpore", OK, found[1])
    if "No module named 'mindspore'" in ended.stderr:
        remedy = tr("activate the environment that has it, name its Python in PYTHON, or: pip install mindspore")
        return None, Line("MindSpore", PROBLEM, tr("{executable} has no MindSpore", executable=sys.executable), remedy)
    if ended.status == page.TIMED_OUT:
        remedy = tr("see whether the disk is slow or the machine busy")
        return None, Line("MindSpore", WARNING, f"import mindspore: {ended.stderr}", remedy)
    text = tr("cannot be imported: {reason}", reason=page.failure(ended))
    return None, Line("MindSpore", PROBLEM, text, tr("install what is missing; python -c 'import mindspore' says more"))


def _cann(has_npus: bool) -> tuple[str | None, Line]:
    """The version, and the Line about it."""
    active = driver.active_cann()
    if active:
        version = driver.cann_version(active, files.ROOT)
        if version:
            return version, Line("CANN", OK, f"{version} ({active})")
        text = tr("no version in {active}, to which ASCEND_HOME_PATH points", active=active)
        return None, Line("CANN", PROBLEM if has_npus else WARNING, text, tr("source the set_env.sh of your CANN"))
    version, folder = driver.installed_cann(files.ROOT)
    if version:
        text = tr("{version} ({folder}), not active in this shell", version=version, folder=folder)
        script = f"{folder}/set_env.sh" if folder.endswith("/cann") else f"{os.path.dirname(folder)}/set_env.sh"
        return version, Line("CANN", PROBLEM if has_npus else OK, text, f"source {script}")
    text = tr("not in {folder} nor ~/Ascend, and ASCEND_HOME_PATH is not set", folder=DEFAULT_ROOT)
    if has_npus:
        return None, Line("CANN", PROBLEM, text, tr("install it, or use a container image that has it"))
    return None, Line("CANN", ABSENT, text)


def _ascend(part: str, version: str | None, npus: Npus) -> Line:
    """part: driver or firmware, as Ascend's folder is named."""
    name = _shown(part)
    if version:
        return Line(name, OK, version)
    text = tr("no version in {folder}/{name}/version.info, and npu-smi names none", folder=root(), name=part)
    if not npus.devices:
        return Line(name, ABSENT, text)
    if part != "driver":
        return Line(name, UNKNOWN, text)
    folder = f"{root()}/{part}"
    return Line(name, UNKNOWN, text, tr("mount {folder} of the host into the container", folder=folder))


def _shown(part: str) -> str:
    """How the page names one of the things that have versions."""
    return {"driver": tr("driver"), "firmware": tr("firmware")}.get(part, part)


# ---- whether they go together ----------------------------------------------------------------------


def rows() -> list[Released]:
    """The table of versions that were released for one another."""
    with open(project.path("tools", "doctor", "versions.json"), encoding="utf-8") as file:
        table: list[Released] = json.load(file)["rows"]
    return table


def canonical(version: str) -> str:
    """One spelling of a version: 8.0.RC2.beta1 is 8.0.rc2, 2.6.0-rc1 is 2.6.0rc1, 24.1.rc2.b030 is 24.1.rc2."""
    text = version.strip().lower().replace("-rc", "rc")
    return re.sub(r"\.(beta\d*|b\d+)$", "", text)


def _compared(versions: dict[str, str | None], judge: Callable[[str, str, str], Line]) -> Line:
    """What `judge` says about two versions; without any of Ascend's software there is nothing to compare."""
    name = tr(" with ").join(map(_shown, versions))
    missing = [_shown(what) for what, version in versions.items() if not version]
    if not missing:
        return judge(name, *filter(None, versions.values()))
    ascend_here = any(version for what, version in versions.items() if what != "MindSpore")
    text = tr("cannot be compared without a version of {missing}", missing=tr(" and ").join(missing))
    return Line(name, UNKNOWN if ascend_here else ABSENT, text)


def _mindspore_with_cann(name: str, mindspore: str, cann: str) -> Line:
    known = [row for row in rows() if canonical(row["mindspore"]) == canonical(mindspore)]
    release = ".".join(cann.split(".")[:2])
    for row in known:
        if _names_cann(row, cann) or (row.get("accepts") and release in row["cann"]):
            return _together(name, mindspore, cann, row["source"])
    if not known:
        text = tr("no table here names MindSpore {mindspore}", mindspore=mindspore)
        return Line(name, UNKNOWN, text, tr("see https://www.mindspore.cn/install"))
    releases = tr(" or ").join(release for row in known for release in row["cann"])
    if any(row.get("accepts") for row in known):
        text = tr(
            "MindSpore {mindspore} accepts CANN {releases}, not {cann} ({source})",
            mindspore=mindspore,
            releases=releases,
            cann=cann,
            source=known[0]["source"],
        )
        return Line(name, WARNING, text, tr("install one that it accepts"))
    text = tr(
        "MindSpore {mindspore} was released with CANN {releases}; nothing is known of {cann} ({source})",
        mindspore=mindspore,
        releases=releases,
        cann=cann,
        source=known[0]["source"],
    )
    return Line(name, UNKNOWN, text, tr("if operators fail, install CANN {releases}", releases=releases))


def _cann_with_driver(name: str, cann: str, driver: str) -> Line:
    known = [(row["driver"], row["source"]) for row in rows() if row["driver"] and _names_cann(row, cann)]
    for released, source in known:
        # 25.0.rc1.1 is a patch of 25.0.rc1
        if f"{canonical(driver)}.".startswith(f"{canonical(released)}."):
            return _together(name, cann, driver, source)
    if not known:
        text = tr("no table here names a driver for CANN {cann}", cann=cann)
        return Line(name, UNKNOWN, text, tr("see CANN's release notes"))
    released, source = known[0]
    text = tr(
        "CANN {cann} was released with driver {released}; nothing is known of {driver} ({source})",
        cann=cann,
        released=released,
        driver=driver,
        source=source,
    )
    return Line(name, UNKNOWN, text, tr("if HCCL fails, install driver {released}", released=released))


def _names_cann(row: Released, cann: str) -> bool:
    return canonical(cann) in map(canonical, row["cann"])


def _driver_with_firmware(name: str, driver: str, firmware: str, verdict: str | None) -> Line:
    """verdict: npu-smi's own: OK, NOK, UNKNOWN or NOT SUPPORT."""
    source = "npu-smi info -t board"
    if verdict == "OK":
        return _together(name, driver, firmware, source)
    values = {"first": driver, "second": firmware, "source": source}
    if verdict == "NOK":
        text = tr("{first} and {second} do not go together ({source})", **values)
        return Line(name, PROBLEM, text, tr("install both from one Ascend HDK"))
    both = tr("{first} and {second}", first=driver, second=firmware)
    told = tr("{versions}: npu-smi reports {verdict}", versions=both, verdict=verdict)
    return Line(name, UNKNOWN, told if verdict else tr("{versions}: npu-smi prints nothing", versions=both))


def _together(name: str, first: str, second: str, source: str) -> Line:
    text = tr("{first} and {second} go together ({source})", first=first, second=second, source=source)
    return Line(name, OK, text)
