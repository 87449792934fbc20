"""The GPUs of this host: which are here, how they are, and who holds them, as nvidia-smi says it."""

from __future__ import annotations

from hccl_tools.common.numbers import whole_number
from hccl_tools.machine import host, nvidia_smi, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.preflight.difference import Value
    from tools.preflight.question import Question

_FIELDS = "index,gpu_uuid,name,driver_version,ecc.errors.uncorrected.volatile.total"
# The first name is that of drivers from 530 on, the second the older one.
_SLOWED = "index,clocks_{0}_reasons.hw_thermal_slowdown,clocks_{0}_reasons.sw_thermal_slowdown"


def collect(question: Question) -> dict[str, Value]:
    """Nothing but what is missing where there are no GPUs, or where only the quick facts are wanted.

    A host with NPUs trains on these, so its GPUs, if it has some, do not matter.
    """
    number = len(host.gpu_nodes())
    if not number or host.nodes():
        return {"gpus": None, "short_of_gpus": []}
    facts: dict[str, Value] = {"short_of_gpus": _missing(question, number)}
    if question.quick:
        return facts
    asked = programs.ask_all(
        {
            "gpus": nvidia_smi.ask(_FIELDS),
            "holders": nvidia_smi.ask_holders(),
            "event": nvidia_smi.ask(_SLOWED.format("event")),
            "throttle": nvidia_smi.ask(_SLOWED.format("throttle")),
        },
        nvidia_smi.SECONDS,
    )
    if asked["gpus"].status:
        return {**facts, "nvidia_smi": programs.said(asked["gpus"])}
    slowed = nvidia_smi.rows(asked["throttle"] if asked["event"].status else asked["event"], 3)
    gpus = nvidia_smi.rows(asked["gpus"], 5)
    return {**facts, **_of_gpus(gpus, nvidia_smi.holders(asked["holders"]), slowed, question.devices)}


def _missing(question: Question, number: int) -> list[str]:
    """The GPUs that the ranks need and this host lacks: by their numbers, or so many of them."""
    if question.devices is not None:
        return [str(device) for device in question.devices if device >= number]
    return [f"{number} < {question.slots}"] if question.slots is not None and question.slots > number else []


def _of_gpus(
    gpus: list[list[str]], holders: dict[str, str], slowed: list[list[str]], used: Sequence[int] | None
) -> dict[str, Value]:
    """What the tables say of the GPUs that the ranks use."""
    mine = [row for row in gpus if used is None or whole_number(row[0]) in used]
    names = [row[2] for row in gpus]
    return {
        "nvidia_smi": None,
        "gpus": ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)),
        "gpu_driver": mine[0][3] if mine else None,
        "gpus_held": [f"{row[0]}: {holders[row[1]]}" for row in mine if row[1] in holders],
        "gpu_memory_errors": [f"{row[0]}: {row[4]}" for row in mine if whole_number(row[4], 1) is not None],
        "gpus_hot": [row[0] for row in slowed if "Active" in row[1:] and row[0] in [own[0] for own in mine]],
    }
