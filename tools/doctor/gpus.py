"""The GPUs of this host, and whether MindSpore can use them."""

from __future__ import annotations

import sys

from hccl_tools.common.language import marked, tr
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import clauses, one_line
from hccl_tools.machine import programs, visible
from tools.doctor import page
from tools.doctor.page import ABSENT, OK, UNKNOWN, WARNING, Facts, Line, Options
from tools.trainer import gpu_backend

TITLE = marked("GPUs")

_QUERY = ["nvidia-smi", "--format=csv,noheader"]


def questions(_: Options) -> dict[str, list[str]]:
    """The queries.  Old drivers do not know compute_cap, so it is a query of its own.  Without nvidia-smi: none."""
    if not programs.on_path("nvidia-smi"):
        return {}
    return {
        "gpus": [*_QUERY, "--query-gpu=name,driver_version"],
        "compute_cap": [*_QUERY, "--query-gpu=compute_cap"],
        "gpus_for_mindspore": [sys.executable, "-c", gpu_backend.QUESTION],
    }


def lines(facts: Facts) -> list[Line]:
    """The GPUs, and MindSpore's support for them."""
    if "gpus" not in facts.answers:
        return [Line(tr("GPUs"), ABSENT, tr("nvidia-smi is not on PATH"))]
    asked = facts.answers["gpus"]
    if asked.status:
        text = tr("nvidia-smi does not work: {reason}", reason=page.failure(asked))
        return [
            Line(tr("GPUs"), WARNING, text, tr("install NVIDIA's driver again, or start the container with the GPUs"))
        ]
    rows = asked.stdout.splitlines()
    if not rows:
        return [Line(tr("GPUs"), ABSENT, tr("nvidia-smi names none"))]
    capability = facts.answers["compute_cap"]
    kinds = clauses(*sorted(set(map(_kind, rows))))
    text = f"{len(rows)}: {kinds}"
    if not capability.status:
        versions = ", ".join(sorted(set(capability.stdout.split())))
        text = tr("{gpus}, compute capability {versions}", gpus=text, versions=versions)
    return [Line(tr("GPUs"), OK, one_line(text)), *_seen(), _for_mindspore(facts.answers["gpus_for_mindspore"])]


def _seen() -> list[Line]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, if it is set."""
    try:
        seen = visible.gpus()
    except Refusal as error:
        return [Line(tr("visible GPUs"), WARNING, str(error))]
    return [Line(tr("visible GPUs"), OK, seen.numbering(list(seen.ids or ())))] if seen.limit and seen.certain else []


def _kind(row: str) -> str:
    """A line of nvidia-smi, ``name, version``, as the page shows it."""
    name, comma, version = row.rpartition(",")
    return tr("{name}, driver {version}", name=name, version=version.strip()) if comma else row


def _for_mindspore(asked: programs.Ended) -> Line:
    name = tr("MindSpore on GPUs")
    if asked.status == 0:
        return Line(name, OK, tr("MindSpore has a GPU back end for the CUDA that is here"))
    if gpu_backend.REFUSED in asked.stderr:
        return Line(name, WARNING, *gpu_backend.why_not(asked.stderr))
    return Line(name, UNKNOWN, tr("MindSpore could not be asked: {reason}", reason=page.failure(asked)))
