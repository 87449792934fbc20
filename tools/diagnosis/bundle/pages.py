"""Writes the pages of a bundle: what is in it, what is masked, this machine, its versions."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import socket
import subprocess
import sys
from functools import cache

from hccl_tools.common import project, typed, utc
from hccl_tools.common.language import marked, tr
from hccl_tools.common.words import one_line
from hccl_tools.machine.distributions import Distributions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter

    from tools.diagnosis.bundle.files import LeftOut

LOOK = marked("host names, addresses, paths and user names are in it; look at it before you send it")
SECONDS = 30  # for the doctor
_AFTER_SIGINT = 3
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DOCTOR = os.path.join(project.ROOT, "scripts", "doctor.sh")
_MOST_LINES = 5000  # of what is left out
_MOST = 1 << 20  # bytes of a page
_PACKAGES = ("mindspore", "mindformers", "mindocr", "mindcv", "mindyolo", "numpy", "PyYAML", "jsonschema", "hyperscan")
_OF_DRIVER = ("driver/version.info", "firmware/version.info")
_OF_CANN = ("version.cfg", "version.info", "ascend_toolkit_install.info")
_FOLDERS = ("/usr/local/Ascend", "/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/latest")


def contents(
    paths: list[str], packed: list[tuple[str, int, int]], left_out: list[LeftOut], masked: dict[str, Counter[str]]
) -> str:
    """What is in the bundle, and what is not: (name, bytes, bytes that were cut) of each file."""
    lines = [
        tr("Logs for the person who helps, packed by tools/diagnose.py --bundle."),
        tr("From: {paths}", paths=", ".join(one_line(os.path.abspath(path)) for path in paths)),
        tr("On: {host}, {time}", host=one_line(socket.gethostname()), time=_now()),
        tr("To read it: python tools/diagnose.py BUNDLE.tar.gz"),
        *("", tr("In it, in bytes:"), ""),
    ]
    for name, size, cut in packed:
        note = tr(", {bytes} bytes are left out in the middle", bytes=cut) if cut else ""
        note += tr(", secrets are masked") if name in masked else ""
        lines.append(f"{size:>10}  {name}{note}")
    lines += ["", tr("Left out:") if left_out else tr("Nothing is left out."), ""]
    lines += [f"{one_line(name)}: {one_line(tr(reason))}" for name, reason in left_out[:_MOST_LINES]]
    if len(left_out) > _MOST_LINES:
        lines.append(tr("and {number} more", number=len(left_out) - _MOST_LINES))
    return "\n".join(lines).rstrip("\n") + "\n"


def masked_page(masked: dict[str, Counter[str]]) -> str:
    """What was masked in which file: names and numbers, never a value."""
    lines = [tr("In the files of this bundle <masked> replaces:"), ""]
    lines += [f"{name}: {_kinds(counts, 1000, numbers=True)}" for name, counts in masked.items()]
    lines += ["" if masked else tr("Nothing: no secret was found."), tr(LOOK)]
    return "\n".join(lines) + "\n"


def _kinds(counts: Counter[str], most: int, numbers: bool) -> str:
    """``HF_TOKEN 2, private key 1, ...``."""
    listed = [one_line(tr(what) if what else what) + f" {count}" * numbers for what, count in counts.most_common(most)]
    return ", ".join([*listed, *(["..."] if len(counts) > most else [])])


def _now() -> str:
    return utc.text()


# --- this machine -----------------------------------------------------------------------------------------------------


def doctor() -> str:
    """The doctor's page, or why there is none."""
    heading = tr(
        "{command} on {host}, {time}",
        command=typed.command("scripts/doctor.sh"),
        host=socket.gethostname(),
        time=_now(),
    )
    status, said = _run(["bash", _DOCTOR], SECONDS)
    if status is None:
        said += tr("It did not end within {seconds} s, and was stopped.", seconds=SECONDS)
    elif status not in (0, 1):
        said += tr("It failed: exit code {status}.", status=status)
    return f"{heading}\n\n{said}\n"


def _run(command: list[str], seconds: float) -> tuple[int | None, str]:
    """(exit code, what the command printed); None: it was stopped, it and what it had started."""
    process = None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # one that came now would leave the process behind
    try:
        process = _start(command, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        said, _ = process.communicate(timeout=seconds)
        return process.returncode, _text(said)
    except OSError as error:
        return 127, f"{command[0]}: {error.strerror}\n"
    except subprocess.TimeoutExpired:
        return None, _text(_stop(process)) if process else ""
    except BaseException:
        if process:
            _stop(process)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(command: list[str], mask: set[int]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
    )


def _stop(process: subprocess.Popen[bytes]) -> bytes:
    """Ends the process: at SIGINT the doctor ends the tools that it waits for."""
    for sign, seconds in ((signal.SIGINT, _AFTER_SIGINT), (signal.SIGKILL, _AFTER_SIGINT)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=seconds)[0]
    return b""  # a tool that hangs in the driver does not die, and holds the pipe


def _text(said: bytes) -> str:
    return said[:_MOST].decode("utf-8", "replace")


def versions() -> str:
    """What is installed here, without the import of anything that takes long."""
    lines = [
        f"Python {platform.python_version()} {sys.executable}",
        f"{platform.system()} {platform.release()} {platform.machine()}, {_release()}",
        *(f"{name} {version}" for name, version in _packages()),
    ]
    lines.append(f"mindspore-launch {_of_this_project() or tr('unknown')}")
    home = os.environ.get("ASCEND_HOME_PATH")
    for folder in dict.fromkeys([*([home] if home else []), *_FOLDERS]):
        for name in (*_OF_DRIVER, *_OF_CANN):
            lines += _file(os.path.join(folder, name))
    return "\n".join(map(one_line, lines)) + "\n"


def _release() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except (AttributeError, OSError):  # Python 3.9; a container without the file
        return "Linux"


@cache
def _of_this_project() -> str:
    """What git calls this checkout; "": it does not state it.  A process that makes several pages asks once."""
    status, said = _run(["git", "-C", project.ROOT, "describe", "--always", "--dirty", "--tags"], 5)
    return said.strip() if status == 0 else ""


@cache
def _packages() -> list[tuple[str, str]]:
    """The packages that are here, and their versions."""
    there = Distributions()
    found = [(name, there.find(name)) for name in _PACKAGES]
    return [(name, package[1]) for name, package in found if package and package[1]]  # a damaged one has no version


def _file(path: str) -> list[str]:
    """The first lines of a small file, after its name."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return ["", f"{path}:", *file.read(2000).splitlines()[:20]]
    except OSError:
        return []


def summary(masked: dict[str, Counter[str]], left_out: list[LeftOut], most: int = 10) -> list[str]:
    """What stderr prints about a bundle."""
    lines = []
    for name, counts in list(masked.items())[:most]:
        number = sum(counts.values())
        names = _kinds(counts, 5, numbers=False)
        lines.append(
            tr("masked: 1 value in {name} ({names})", name=name, names=names)
            if number == 1
            else tr("masked: {number} values in {name} ({names})", number=number, name=name, names=names)
        )
    if len(masked) > most:
        text = tr("masked: in {number} more files; masked.txt in the bundle lists them", number=len(masked) - most)
        lines.append(text)
    lines += [
        tr("left out: {name}: {reason}", name=one_line(one.name), reason=one_line(tr(one.reason)))
        for one in left_out[:most]
    ]
    if len(left_out) > most:
        number = len(left_out) - most
        lines.append(tr("left out: {number} more files; contents.txt in the bundle lists them", number=number))
    return [*lines, tr(LOOK)]
