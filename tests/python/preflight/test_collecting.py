"""Collectors run beside each other, and none can cost the others their facts."""

import os
import signal
import threading

from tools.preflight import collecting
from tools.preflight.collecting import Collector


def hang():
    threading.Event().wait()


def hang_deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 16))
    hang()


def test_facts_of_all_are_together_and_the_first_that_is_known_counts():
    found = collecting.run(
        {
            "a": Collector(lambda: {"x": None, "y": 1}, 60),
            "b": Collector(lambda: {"x": "2", "y": 3, "z": ("4",)}, 60),
        }
    )
    assert found == ({"x": "2", "y": 1, "z": ["4"]}, {})


def test_one_that_raises_one_that_dies_and_one_that_hangs_cost_only_their_own_facts():
    def raises():
        raise OSError(5, "Input/output error")

    found, failed = collecting.run(
        {
            "well": Collector(lambda: {"x": 1}, 60),
            "raises": Collector(raises, 60),
            "dies": Collector(lambda: os.kill(os.getpid(), signal.SIGKILL), 60),
            "hangs": Collector(hang, 0.01),
            "stuck in a call": Collector(hang_deaf, 0.01),
        }
    )
    assert found == {"x": 1}
    assert failed == {
        "raises": "OSError: [Errno 5] Input/output error",
        "dies": "it ended without an answer",
        "hangs": "no answer within 0.01 s",
        "stuck in a call": "no answer within 0.01 s",
    }


def test_what_a_collector_prints_does_not_reach_the_answer(capfd):
    def prints():
        os.write(1, b"noise")
        os.write(2, b"noise")
        return {"stdin": os.read(0, 1).decode()}

    assert collecting.run({"a": Collector(prints, 60)}) == ({"stdin": ""}, {})
    assert capfd.readouterr() == ("", "")


def test_facts_that_are_too_many_are_refused_and_large_ones_arrive():
    large = "x" * (1 << 19)
    found, failed = collecting.run(
        {"large": Collector(lambda: {"a": large}, 60), "huge": Collector(lambda: {"b": large * 4}, 60)}
    )
    assert (found, failed) == ({"a": large}, {"huge": "it ended without an answer"})


def test_no_child_is_left_and_no_pipe():
    pipes, before = len(os.listdir("/proc/self/fd")), children()
    collecting.run({"a": Collector(lambda: {}, 60)})
    assert len(os.listdir("/proc/self/fd")) == pipes
    assert children() <= before  # other tests of this process may have some


def children():
    """The ids of this process's children, also of those that have ended and that nobody has waited for."""
    found = set()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parent = file.read().rpartition(")")[2].split()[1]
        except OSError:  # it has ended meanwhile
            continue
        found |= {int(name)} if int(parent) == os.getpid() else set()
    return found
