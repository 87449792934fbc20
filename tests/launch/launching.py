"""Requests for tests, made as the scripts make them: from words; and why a program is refused."""

from hccl_tools.common.refusal import REFUSED, Refusal
from tools.launch.request import Request

WORDS = {
    "script": "run.sh",
    "job_pid": "24",
    "engine": "local",
    "device_target": "Ascend",
    "script_devices": "[0,8)",
    "config": "config.yaml",
}


def words(*trainer, **given):
    """The words of a launch that names `given`."""
    return [*(f"{name}={value}" for name, value in {**WORDS, **given}.items()), "--", *trainer]


def request(*trainer, **given):
    """The Request of a launch that names `given`, with the arguments `trainer` for the trainer."""
    return Request.from_words(words(*trainer, **given))


def refusal_of(check, folder, target, lines):
    """Why `check` refuses a program of these lines, in the current folder, for the target; empty if it does not."""
    (folder / "net.py").write_text("\n".join(("import mindspore as ms", *lines)) + "\n")
    try:
        check("net.py", target)
    except Refusal as refusal:
        assert refusal.status == REFUSED and len(refusal.lines) == 1
        return refusal.lines[0]
    return ""
