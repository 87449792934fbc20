"""The sentence about a job that was asked to save and to end, from its launch.json."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import named, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 1 << 53  # larger numbers are none of a step, and of no rank


def sentence(outcome: dict[str, Any]) -> str | None:
    """Why the job ended, and what is saved; None where nobody asked it to end, or its ranks do not save."""
    asked, what = outcome.get("asked"), outcome.get("stopped_by")
    if not isinstance(asked, dict) or not isinstance(what, str):
        return None
    what, saved, not_saved = one_line(what), _numbers(asked.get("saved")), _numbers(asked.get("not_saved"))
    if not saved:
        return None
    if not_saved:
        return tr("asked to end ({what}); {ranks} did not save", what=what, ranks=named("rank", not_saved))
    epoch, step = _number(asked.get("epoch")), _number(asked.get("step"))
    if epoch is None or step is None:
        return tr("asked to end ({what}); all ranks ended with 0", what=what)
    return tr("asked to end ({what}) at step {step} of epoch {epoch}, saved", what=what, step=step, epoch=epoch)


def all_saved(outcome: dict[str, Any]) -> bool:
    """Whether all ranks have saved after one step."""
    asked = outcome.get("asked")
    return (
        isinstance(asked, dict)
        and _number(asked.get("step")) is not None
        and bool(_numbers(asked.get("saved")))
        and not _numbers(asked.get("not_saved"))
    )


def _numbers(value: object) -> list[int]:
    found = map(_number, value) if isinstance(value, list) else ()
    return [number for number in found if number is not None]


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None
