"""The check of pods: what a pod lets itself be asked by the one that compares, and documents on their way."""

import base64
import zlib

import pytest

from tools.attempts.wire import Lost
from tools.preflight import check
from tools.preflight.pods import asked, messages
from tools.preflight.pods.place import Place
from tools.preflight.program_files import Program


@pytest.fixture
def mine(world):
    files = {str(world / "train.py"): "0123"}
    job = check.Job(program=Program(files, []), ports=[9000], data="d")
    return asked.own(
        job, Place(kind="check", pods=2, number=1, is_hub=False, host="h", port=1, job="j", wait=1, slots=2)
    )


def told(world, **changes):
    links = {
        "host": "pod-1",
        "nonce": "ab",
        "seconds": 5.0,
        "quiet": 3.0,
        "address": "fd00::1",
        "listens": [60000],
        "expects": [["pod-0", 60000]],
        "connects": [["pod-0", "10.0.0.1", 60000, "full"]],
    }
    whole = {"host": "pod-1", "hosts": 2, "first": "10.0.0.1", "first_at": "10.0.0.1", "salt": "ab", "links": links}
    return {**whole, "files": {str(world / "own.py"): "45"}, **changes}


def test_the_hub_adds_to_the_question_what_all_pods_have_alike_and_nothing_else(mine, world):
    found = asked.whole(mine, told(world, log_dir="/etc", data="/etc/shadow", set_here=[]))
    assert (found.host, found.hosts, found.salt, found.links["address"]) == ("pod-1", 2, "ab", "fd00::1")
    assert (found.log_dir, found.data, found.slots) == (str(world / "logs"), str(world / "d"), 2)
    assert found.files == {str(world / "own.py"): "45"} and "MS_NODE_RANK" in found.set_here


def test_the_hub_cannot_have_files_read_that_are_not_of_the_program(mine, world):
    paths = ["/etc/shadow", f"{world}/../secret", f"{world}/a/../../b", "/proc/1/environ", str(world) + "x/y"]
    assert asked.whole(mine, told(world, files=dict.fromkeys(paths, "00"))).files == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"host": "-oProxyCommand=x"},
        {"host": 7},
        {"hosts": 0},
        {"hosts": "2"},
        {"first_at": "name"},
        {"salt": "\x1b[2J"},
        {"files": []},
        {"files": {"/a": "\n"}, "host": ""},
        {"links": []},
        {"links": {"host": "a"}},
    ],
)
def test_a_question_of_another_form_ends_the_talk(mine, world, changes):
    with pytest.raises(Lost):
        asked.whole(mine, told(world, **changes))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("listens", [0]),
        ("listens", list(range(1, 200))),
        ("expects", [["a"]]),
        ("connects", [["a", "name", 1, "full"]]),
        ("connects", [["a", "10.0.0.1", 1, "rm"]]),
        ("connects", [["a", "10.0.0.1", True, "full"]]),
        ("seconds", 1e9),
        ("seconds", True),
        ("nonce", "x"),
    ],
)
def test_links_of_another_form_end_the_talk(mine, world, name, value):
    links = {**told(world)["links"], name: value}
    with pytest.raises(Lost):
        asked.whole(mine, told(world, links=links))


def test_a_question_without_a_part_ends_the_talk(mine, world):
    for name in told(world):
        with pytest.raises(Lost):
            asked.whole(mine, {key: value for key, value in told(world).items() if key != name})
    for none in (None, 3, [], "x"):
        with pytest.raises(Lost):
            asked.whole(mine, none)


# ---- documents -------------------------------------------------------------------------------------------------------


def test_a_document_arrives_as_it_was_sent():
    assert messages.unpacked(messages.packed({"a": ["é", 1]})) == {"a": ["é", 1]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "%",
        "AAAA",
        base64.b64encode(zlib.compress(b"no JSON")).decode(),
        base64.b64encode(zlib.compress(b'"' + b" " * (1 << 24) + b'"')).decode(),  # a few KB that become many
        base64.b64encode(zlib.compress(b"[" * 100_000)).decode(),
        base64.b64encode(zlib.compress(b"1")[:-2]).decode(),
    ],
    ids=["empty", "no base64", "no zlib", "no JSON", "grows", "deep", "half"],
)
def test_what_is_no_document_is_refused(text):
    with pytest.raises(Lost):
        messages.unpacked(text)
