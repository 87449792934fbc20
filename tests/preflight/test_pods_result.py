"""The check of pods: what each hears, what it is called, what becomes of a launch, and the end of a pod."""

import os
import signal

import pytest

from hccl_tools.common.refusal import Refusal
from tools.attempts.wire import Lost
from tools.preflight import before_launch, words
from tools.preflight.difference import BLOCKS, SLOWS, Difference, Group
from tools.preflight.pods import command, messages
from tools.preflight.words import Found


def test_what_the_hub_tells_is_harmless_and_of_the_right_form():
    good = {"verdict": "differs", "late": False, "hosts": 2, "line": "a\x1b[2J" + "b" * 9000, "findings": []}
    read = command.read(good)
    assert read.line.isprintable() and len(read.line) <= 4000
    finding = {"level": "blocks", "text": "x", "remedy": ""}
    for changes in (
        {"verdict": "well"},
        {"hosts": 0},
        {"hosts": True},
        {"line": 7},
        {"findings": [finding] * 41},
        {"findings": [{**finding, "level": "?"}]},
        {"findings": [{"level": "blocks"}]},
        {"findings": [7]},
        {"findings": None},
    ):
        with pytest.raises(Lost):
            command.read({**good, **changes})
    assert command.read({**good, "findings": [finding]}).findings == [finding]


def test_the_line_of_a_pod_has_its_own_part_of_each_difference():
    groups = [Group(hosts=["a", "b"], text="MTU 1", value="1"), Group(hosts=["c"], text="MTU 2", value="2")]
    others = Group(hosts=["d", "e", "f", "g"], text="MTU 3", value="3")
    found = Found(hosts=list("abcdefg"), differences=[Difference(key="mtu", level=SLOWS, groups=groups, others=others)])
    line = command.for_pods(found, "a")("c")["line"]
    assert line.startswith("c: MTU 2; the other 4 hosts: 3; the log of a has all: 7 hosts, 1 finding")
    many = Found(
        hosts=["a", "b"], differences=[Difference(key=f"k{n}", level=BLOCKS, groups=groups[:1]) for n in range(9)]
    )
    assert "and 5 more" in command.for_pods(many, "b")("a")["line"]
    assert len(command.for_pods(many, "b")("a")["findings"]) == 9 <= words.MOST_KEPT


@pytest.mark.parametrize(
    ("told_", "known", "names"),
    [
        ({0: "job-0", 1: "job-1"}, [], ["job-0", "job-1", "pod-2"]),
        ({0: "node", 1: "node"}, ["a", "b", "c"], ["a", "b", "c"]),
        ({0: "pod-1"}, [], ["pod-0", "pod-1", "pod-2"]),
        ({}, ["x"], ["x", "pod-1", "pod-2"]),
    ],
)
def test_pods_are_called_by_names_that_are_each_used_once(told_, known, names):
    assert messages.choose_names(3, told_, known) == names


@pytest.mark.parametrize("text", ["", "a b", "x" * 64, "u@h", "-o", "a\n", "::1"])
def test_what_is_no_host_name_names_no_pod(text):
    assert not messages.is_name(text)


# ---- before a launch -------------------------------------------------------------------------------------------------


def test_a_launch_is_refused_or_goes_on_by_what_the_first_pod_has_told(world, monkeypatch):
    heard = command.Result(verdict="differs", late=False, hosts=2, line="pod-1: MTU 1", findings=[])
    found = before_launch.of_pod(heard, 124)
    assert (found.told["verdict"], found.told["hosts"], found.told["digests"]) == ("differs", 2, {})
    assert (list(found.remarks), found.kept, found.changed) == (["pod-1: MTU 1"], "", "")
    with pytest.raises(Refusal) as refused:
        before_launch.of_pod(heard.replace(verdict="blocks"), 124)
    assert (refused.value.status, refused.value.lines[-1]) == (78, "--preflight: nothing was started")
    with pytest.raises(Refusal) as refused:
        before_launch.of_pod(heard.replace(verdict="blocks", late=True), 124)
    assert refused.value.status == 124


def test_the_kubelet_ends_a_check_by_sigterm_also_as_process_1(signals):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, command.heeding_the_kubelet():
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    assert ended.value.code == 143 and signal.getsignal(signal.SIGTERM) is before
