"""The record of the checkpoints from which a launch continues; tools/launch/resume/resuming.py makes it."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.machine import programs
from tools.launch import latest_link
from tools.trainer.checkpoints import labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SECONDS = 600  # that the copies of checkpoints may take


class Resumption(Record):
    """The checkpoints from which a launch continues."""

    run: str | None  # the folder of the run that saved; None: only its checkpoints are known
    source: str  # the folder with rank_0, rank_1 ...
    folder: str  # the same, or one of the new run, with the checkpoints for its number of ranks
    convert: list[str] = []  # the command that makes `folder`
    candidates: list[
        tuple[str, labels.Label]
    ]  # (path, Label) of a rank, newest first; all ranks of this host have them
    remarks: tuple[str, ...] = ()

    @property
    def label(self) -> labels.Label:
        """What is resumed, if this host knows it."""
        return self.candidates[0][1]

    def where(self) -> str:
        """Where it continues, for people."""
        label = self.label
        folder = one_line(latest_link.shown(self.source))
        if label.steps < label.epoch_steps:
            text = tr(
                "after step {steps} of epoch {epoch}, from {folder}",
                steps=label.steps,
                epoch=label.epoch,
                folder=folder,
            )
        else:
            text = tr("after epoch {epoch}, from {folder}", epoch=label.epoch, folder=folder)
        return text

    def record(self) -> dict[str, Any]:
        """The same for launch.json."""
        label = self.label
        of = {} if self.run is None else {"run": self.run}
        return {**of, "folder": self.source, "epoch": label.epoch, "steps": label.steps, "ranks": label.ranks}

    def setting(self) -> str:
        """The argument for -o that passes this to the trainer."""
        return f"{latest_link.RESUME_FROM}={latest_link.yaml_word(self.folder)}"

    def make(self) -> None:
        """Makes the checkpoints for the new number of ranks.  Raises Refusal."""
        done = programs.ask(self.convert, _SECONDS) if self.convert else None
        if done and done.status:
            raise Refusal(
                REFUSED, f"--resume: {one_line(done.stderr.strip()) or tr('exit {status}', status=done.status)}"
            )
