"""Finds settings that conflict with MindSpore's fault tolerance (MS_ENABLE_TFT), before the start.

MindSpore reads the variable when it is imported.  MindIO (the package mindio_ttp) reads it when the training begins.
msrun asks TaskD (the package taskd) to control its ranks.  Neither package is imported here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.refusal import REFUSED, Refusal, misused, refused
from hccl_tools.common.words import one_line
from tools.launch.request import Request

TFT, THM = "MS_ENABLE_TFT", "MS_ENABLE_THM"
BY_TASKD = ("TTP", "UCE", "ARF", "TSP", "HCCE", "RSC")  # with one of them msrun asks TaskD
BY_MINDIO = ("TTP", "UCE", "ARF", "TSP", "HCCE")
NOT_WITH_ATO = ("TTP", "UCE", "ARF", "TRE", "TSP")
KNOWN = {*BY_TASKD, "TRE", "ATO"}
SAVE, SAVE_IN = "HCCL_STATUS_SAVE", "HCCL_STATUS_SAVE_CONFIG"


def check(request: Request) -> list[str]:
    """Remarks for the user.  Raises Refusal where the ranks could not begin, or two would start ranks again."""
    text = os.environ.get(TFT, "").strip()
    tft, thm = _pairs(TFT), _pairs(THM)
    _status_file(thm)
    # MindSpore looks for these texts, so a blank in one of them hides it.
    on = {name for name in KNOWN if f"{name}:1" in text}
    if "ATO" in on and on.intersection(NOT_WITH_ATO):
        others = ", ".join(sorted(on.intersection(NOT_WITH_ATO)))
        raise refused(
            "{name}: MindSpore takes ATO:1 only alone, and not with {others}; leave one of them out",
            name=TFT,
            others=others,
        )
    if request.device_target == "Ascend" and on.intersection(BY_MINDIO):
        _mindio()
    if on.intersection(BY_TASKD) and request.engine == "msrun" and request.max_restarts and _is_there("taskd"):
        raise misused(
            "--max_restarts: {name} lets TaskD control the ranks and restart them itself, and a pod that TaskD "
            "gives up must end; leave --max_restarts out, or unset {name}",
            name=TFT,
        )
    return [*_unseen(text, tft, on), *_remarks(request, on, thm)]


def _pairs(name: str) -> dict[str, str]:
    """{switch: value} as MindSpore reads the variable at its import, which fails without a colon.  Raises Refusal."""
    found = {}
    for item in os.environ.get(name, "").replace("{", "").replace("}", "").strip().split(","):
        if not item:
            continue
        key, colon, value = item.partition(":")
        if not colon:
            raise refused(
                '{name}: MindSpore cannot be imported with "{item}", which has no colon; write such as {example}',
                name=name,
                item=one_line(item),
                example="{TTP:1,ARF:1}" if name == TFT else "{HCCL_WATCHDOG:0}",
            )
        found[key.strip()] = value.strip()
    return found


def _status_file(thm: dict[str, str]) -> None:
    """MindSpore reads this file of MS_ENABLE_THM at its import, too.  Raises Refusal."""
    path = thm.get(SAVE_IN, "").strip("'\"")
    if SAVE_IN in thm:
        from hccl_tools.common import documents

        try:
            ready = isinstance(documents.read_json(path), dict)
        except (OSError, ValueError) as error:
            raise _no_import(one_line(path), one_line(strerror(error))) from error
        if not ready:
            raise _no_import(one_line(path), tr("it is not a JSON object"))
    elif thm.get(SAVE) == "1":
        raise _no_import(f"{SAVE}:1", tr("{name}:FILE is missing", name=SAVE_IN))


def _no_import(what: str, reason: str) -> Refusal:
    return refused("{name}: MindSpore cannot be imported with {what}: {reason}", name=THM, what=what, reason=reason)


def _mindio() -> None:
    """What MindIO needs in every rank when the training begins.  Raises Refusal with a line for each."""
    lines = []
    port = os.environ.get("MS_TFT_PORT")
    if port is None:
        lines.append(
            tr(
                "MS_TFT_PORT is not set, and {name} turns MindIO on: MindSpore dies with a TypeError when the training"
                " begins; type: export MS_TFT_PORT=30051, and MS_TFT_IP with the address of the host of rank 0",
                name=TFT,
            )
        )
    elif whole_number(port.strip(), 1, 65535) is None:
        lines.append(tr("MS_TFT_PORT {port} is not a number from 1 to 65535", port=one_line(port)))
    if os.environ.get("MINDIO_FOR_MINDSPORE", "").lower() not in ("1", "true"):
        lines.append(
            tr(
                "{name} turns MindIO on, which treats the ranks as PyTorch's unless another variable is set; "
                "type: export MINDIO_FOR_MINDSPORE=1",
                name=TFT,
            )
        )
    if not _is_there("mindio_ttp"):
        lines.append(
            tr(
                "{name} turns MindIO on, but {python} has no package mindio_ttp: install MindIO TFT's wheel, or unset"
                " {name}",
                name=TFT,
                python=sys.executable,
            )
        )
    if lines:
        raise Refusal(REFUSED, *lines)


def _is_there(package: str) -> bool:
    """Whether the ranks' Python, which is this one, finds the package."""
    from importlib.util import find_spec

    return find_spec(package) is not None


def _unseen(text: str, tft: dict[str, str], on: set[str]) -> Iterator[str]:
    """Switches that MindSpore does not see."""
    for name, value in tft.items():
        if name in KNOWN and value == "1" and name not in on:
            yield tr(
                "note: {variable}: MindSpore looks for {name}:1 without blanks, so it does not see it",
                variable=TFT,
                name=name,
            )
        elif name.upper() in KNOWN and name not in KNOWN:
            yield tr(
                "note: {variable}: MindSpore does not know {name}; write {right}:1",
                variable=TFT,
                name=one_line(name),
                right=name.upper(),
            )
    if not text and os.environ.get("MINDIO_FOR_MINDSPORE", "").lower() in ("1", "true"):
        yield tr("note: MINDIO_FOR_MINDSPORE turns nothing on without {variable}, such as {{TTP:1}}", variable=TFT)


def _remarks(request: Request, on: set[str], thm: dict[str, str]) -> Iterator[str]:
    """What works, but differently than expected."""
    if "ARF" in on and thm.get("HCCL_WATCHDOG") == "1":
        yield tr(
            "note: ARF turns HCCL's watchdog off, although {name} turns it on; write {{HCCL_WATCHDOG:0}} there",
            name=THM,
        )
    if "TRE" in on and on & {"UCE", "ARF"}:
        yield tr("note: {name}: TRE does not work together with UCE or ARF; leave one of them out", name=TFT)
    restarts = sorted(on & {"ARF", "RSC"})
    if restarts and request.engine != "msrun":
        yield tr(
            "note: {switches}: only msrun lets TaskD restart a rank; here a rank that fails ends the job; use "
            "msrun_launcher.sh or run_msrun.sh",
            switches=", ".join(restarts),
        )
    elif restarts and not _is_there("taskd"):
        yield tr(
            "note: {switches}: {python} has no package taskd, so nothing restarts a rank, and a rank that fails "
            "ends the job; install MindCluster's TaskD",
            switches=", ".join(restarts),
            python=sys.executable,
        )
    elif "TTP" in on and not (request.engine == "msrun" and _is_there("taskd")):
        yield tr(
            "note: TTP: when a rank fails, the others have only --grace to save; --keep_going lets them save first"
        )
