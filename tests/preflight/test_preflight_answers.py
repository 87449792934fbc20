"""What comes from other hosts is input: of a wrong form, too much of it, or with what commands a terminal."""

import json

import jsonschema
import pytest
from healthy_hosts import HEALTHY, answers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hccl_tools.common import project
from tools.preflight import compare, words
from tools.preflight.difference import BLOCKS, Answer, Difference, Group
from tools.preflight.words import Found

with open(project.path("schemas", "preflight.schema.json"), encoding="utf-8") as schema:
    SCHEMA = json.load(schema)
ANY = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("content", [None, 1, [], "x", {}, {"facts": []}, {"facts": {}, "failed": 1}])
def test_an_answer_of_another_form_is_none(content):
    assert compare.taken(content) is None


def test_too_many_facts_are_none():
    assert compare.taken({"facts": {f"package:{n}": "1" for n in range(2001)}, "failed": {}}) is None


def test_facts_that_the_catalogue_does_not_have_are_left_out():
    found = compare.taken(
        {"facts": {"mindspore": "2.6.0", "evil": "x", "package:": "1"}, "failed": {"x": "y", "disk": "z"}}
    )
    assert (found.facts, found.failed) == ({"mindspore": "2.6.0"}, {"disk": "z"})


def test_what_commands_a_terminal_is_made_visible_and_long_text_is_cut():
    facts = {"mindspore": "\x1b[2J", "package:\x1b]0;x": "1", "cann": "x" * 10_000, "held": ["\x07"] * 10_000}
    found = compare.taken({"facts": facts, "failed": {"disk": "\x1b[31m" + "y" * 10_000}})
    text = json.dumps([found.facts, found.failed])
    assert "\\u001b" not in text and "\\u0007" not in text
    assert len(text) < 5_000


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ANY, st.dictionaries(st.sampled_from([*HEALTHY, "package:x", "x"]), ANY))
def test_whatever_a_host_says_the_page_is_printable_and_the_document_fits_its_schema(content, facts):
    hosts = answers(3)
    hosts["odd"] = compare.taken({"facts": facts, "failed": {}})
    assert compare.taken(content) is None or isinstance(compare.taken(content), Answer)
    found = Found(hosts=list(hosts), differences=compare.compare(hosts))
    assert words.page(found, colour=False).replace("\n", "").isprintable()
    jsonschema.validate(words.document(found, "2026-01-01T00:00:00Z"), SCHEMA)


def test_files_of_which_a_host_says_nothing_are_as_on_the_asking_host():
    said = {
        "a": Answer(facts={"file:/x/net.py": "ffff"}),
        "b": Answer(facts={}),
        "c": Answer(facts={"file:/x/net.py": None}),
        "d": Answer(facts={}, failed={"files": "no answer within 5 s"}),
    }
    found = compare.completed(said, {"/x/net.py": "0123", "/x/train.py": "4567"})
    assert [each.facts for each in found.values()] == [
        {"file:/x/net.py": "ffff"},
        {"file:/x/net.py": "0123"},
        {"file:/x/net.py": None},
        {},
    ]


def test_the_document_has_what_the_page_says():
    found = Found(
        hosts=["a", "b", "c"],
        differences=compare.compare(answers(3, {1: {"mindspore": "2.5.0", "held": ("0: python",)}})),
        silent=["c"],
        lines=["c: no answer; it printed nothing (exit 255)"],
    )
    made = words.document(found, "2026-01-01T00:00:00Z")
    first = made["differences"][0]
    assert (made["verdict"], made["hosts"], made["silent"], made["reasons"]) == ("blocks", 3, ["c"], found.lines)
    assert first == {
        "fact": "mindspore",
        "level": BLOCKS,
        "groups": [{"hosts": ["node1"], "text": "MindSpore 2.5.0", "values": {"mindspore": "2.5.0"}}],
        "others": {"hosts": 2, "text": "MindSpore 2.6.0", "values": {"mindspore": "2.6.0"}},
        "remedy": "install the same version on all hosts",
    }
    assert made["differences"][1]["groups"][0]["values"] == {"held": ["0: python"]}


@pytest.mark.parametrize(
    ("levels", "silent", "verdict"),
    [([], [], "good"), (["slows"], [], "differs"), (["surprises", "blocks"], [], "blocks"), ([], ["c"], "blocks")],
)
def test_the_verdict_is_that_of_the_worst(levels, silent, verdict):
    differences = [Difference(key="x", level=level, groups=[Group(hosts=["a"], text="t")]) for level in levels]
    assert words.verdict(Found(hosts=["a", "c"], differences=differences, silent=silent)) == verdict


def test_the_page_says_one_line_without_a_fault_and_the_worst_first_with_some():
    assert words.page(Found(hosts=["a"] * 16, differences=[]), colour=False) == "16 hosts agree; nothing blocks\n"
    assert words.page(Found(hosts=["node3"], differences=[]), colour=False) == "node3: nothing blocks\n"
    few = {n: {"shm_free": (8 + n) << 20} for n in range(10)}
    few[3] = {"cpus": 4, **few[3]}
    lines = words.page(Found(hosts=list(answers(10)), differences=compare.compare(answers(10, few))), colour=False)
    assert lines.splitlines()[0::3][:2] == ["This stops the job:", "This slows it:"]
    assert lines.splitlines()[1] == "  node[0-7]: 8.0 MiB to 15.0 MiB free in /dev/shm; at least 16.0 MiB is needed"
    assert lines.splitlines()[4] == "  node3: 4 processors; the other 9 hosts: 192"
    assert lines.splitlines()[-1] == "10 hosts, 3 findings: 1 blocking, 1 slowing, 1 surprising"


def test_what_all_of_many_hosts_lack_names_none_of_them():
    hosts = answers(10, {n: {"shm_free": 0} for n in range(10)})
    page = words.page(Found(hosts=list(hosts), differences=compare.compare(hosts)), colour=False)
    assert "\n  all 10 hosts: 0 KiB free in /dev/shm; at least 16.0 MiB is needed\n" in page
