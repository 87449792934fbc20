"""What tests of several commands for rank tables share."""

import json

import pytest

from hccl_tools.commands import diff


@pytest.fixture
def compared(world, in_process):
    """compared(a, b, "--json"): (exit code, stdout, stderr) of the command for two documents."""

    def start(a, b, *words):
        (world / "a.json").write_text(json.dumps(a))
        (world / "b.json").write_text(json.dumps(b))
        return in_process(diff.main, "a.json", "b.json", *words)

    return start


@pytest.fixture
def differences(compared):
    """differences(a, b): the lines between those about the tables and the number of differences."""

    def start(a, b):
        status, out, err = compared(a, b)
        lines = out.splitlines()
        assert (status, err) == (1, ""), out
        assert lines[0].startswith("a: a.json: ") and lines[1].startswith("b: b.json: ")
        assert lines[-1].endswith(" difference" if lines[-1].startswith("1 ") else " differences")
        return lines[2:-1]

    return start
