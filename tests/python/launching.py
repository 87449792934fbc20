"""Requests for tests, made as the scripts make them: from words."""

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
