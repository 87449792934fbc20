"""Finds earlier runs: the newest of a config or a named one, and the place of its checkpoints."""

from __future__ import annotations

import os
import re
import socket

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import one_line, short
from tools.launch import record
from tools.launch.latest_link import shown
from tools.launch.programs import trainer_command
from tools.trainer.checkpoints import choosing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NAME = re.compile(r"-(\d{8}T\d{6}Z)-(\d+)(?:-(\d+))?$")  # time, process id of the launcher, number among namesakes


def newest(logs: str, config: str) -> str:
    """The newest run of the config in the folder `logs` that has checkpoints.  Raises Refusal."""
    others = None
    for run in newest_first(logs):
        try:
            document = record.read(run)
        except Refusal:
            continue  # the launch ended before it had written it, so nothing was trained
        if choosing.any_labelled(_folder(run, document)):
            if _config_of(document) == os.path.realpath(config):
                return run
            others = others or run
    more = (
        tr("; {run} has some, but from another config or trainer: --resume={run}", run=one_line(shown(others)))
        if others
        else ""
    )
    raise refused(
        "--resume: no run of {config} in {logs} has checkpoints{more}; name a run with "
        "--resume=FOLDER, or train from the beginning without --resume",
        config=one_line(config),
        logs=one_line(logs),
        more=more,
    )


def named(path: str) -> tuple[str | None, str | None]:
    """(folder of the run, folder of its checkpoints), as far as `path` says; no links are in them.  Raises Refusal."""
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        reason = tr("is not a folder") if os.path.exists(real) else tr("no such folder")
        raise _not_a_run(path, reason)
    if os.path.exists(record.path(real)):
        return real, None
    if choosing.any_labelled(real):
        above = os.path.dirname(real)
        return (above if os.path.exists(record.path(above)) else None), real
    raise _not_a_run(path, tr("has neither a launch.json nor checkpoints in rank_0 ..."))


def _not_a_run(path: str, reason: str) -> Refusal:
    text = tr("{path}: {reason}; name the folder of a run, such as logs/latest", path=one_line(path), reason=reason)
    return Refusal(REFUSED, f"--resume {text}")


def checkpoints_of(run: str) -> str:
    """The folder of the run's checkpoints.  Raises Refusal."""
    return _folder(run, record.read(run))


def check_ended(run: str) -> None:
    """Raises Refusal while the run's launcher is alive on this host: checkpoints would go while they are read."""
    document = record.read(run)
    process = None if "outcome" in document else process_of(run, document)
    if process is not None:
        raise refused(
            "{run} still runs as process {process}; stop it first, or name another run",
            run=one_line(shown(run)),
            process=process,
        )


def process_of(run: str, document: dict[str, Any]) -> int | None:
    """The run's launcher, if it is alive on this host; `document`: the run's launch.json."""
    name = _NAME.search(run)
    if not name or document.get("host") != socket.gethostname():
        return None
    try:
        with open(f"/proc/{name[2]}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return None
    script = os.fsencode(str(document.get("script")))
    return int(name[2]) if any(os.path.basename(word) == script for word in words) else None


def check_same_network(run: str, filled: dict[str, Any]) -> None:
    """Raises Refusal if the run's network in launch.json differs from that of the config `filled`."""
    saved = record.read(run).get("checkpoints")
    before = saved.get("model") if isinstance(saved, dict) else None
    now = filled["model"]
    if not isinstance(before, dict):
        return  # of another trainer, or of an earlier version of this project
    for key in sorted({*before, *now}):
        if before.get(key) != now.get(key):
            raise refused(
                "{run} belongs to another config: model.{key} is {there} there and {here} here; name a run of "
                "this config, or start with the config of that run",
                run=one_line(shown(run)),
                key=one_line(short(key)),
                there=short(before.get(key)),
                here=short(now.get(key)),
            )


def newest_first(logs: str) -> list[str]:
    """The folders of runs in the folder `logs`, without links, by the time in their names."""
    found = []
    for name in os.listdir(logs) if os.path.isdir(logs) else ():
        path, parts = os.path.join(logs, name), _NAME.search(name)
        if parts and os.path.isdir(path) and not os.path.islink(path):
            found.append((parts[1], int(parts[3] or 1), os.path.getmtime(path), os.path.realpath(path)))
    return [run for *_, run in sorted(found, reverse=True)]


def _folder(run: str, document: dict[str, Any]) -> str:
    saved = document.get("checkpoints")
    folder = saved.get("folder") if isinstance(saved, dict) else None
    moved = not isinstance(folder, str) or os.path.join(str(document.get("run_dir")), "ckpt") == folder
    return os.path.join(run, "ckpt") if moved else os.path.realpath(str(folder))


def _config_of(document: dict[str, Any]) -> str | None:
    """The config of a run of our trainer, without links; None of another trainer."""
    words, folder = document.get("trainer"), document.get("folder")
    if not isinstance(words, list) or not isinstance(folder, str) or len(words) < 5:
        return None
    own = os.path.realpath(os.path.join(folder, str(words[2]))) == trainer_command.OWN
    config = trainer_command.named_config([str(word) for word in words[3:]]) if own else None
    return None if config is None else os.path.realpath(os.path.join(folder, config))
