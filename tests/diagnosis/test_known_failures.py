"""The table of known failures, the pages made from it, and a file of the user's own."""

import itertools
import json
import os
import re
from pathlib import Path

import documents
import pytest
from logs.known import COMPLAINTS, ENTRIES, of_launches
from suite.cases import for_each, none

from hccl_tools.common import language
from tools.logs import known_failures
from tools.pages import known_failures_page
from tools.pages.messages import OF_SYSTEM

FAULTS = os.environ.get("FAULT_LOGS")
CODES = [entry.code for entry in ENTRIES]
NO_SPACE = {"0": (1, "OSError: [Errno 28] No space left on device\n")}


def test_the_table_has_no_mistake():
    assert COMPLAINTS == []
    assert len(CODES) == len(set(CODES)) > 70
    wanted = [f"EI00{number:02}" for number in range(1, 21)] + [f"EJ000{number}" for number in range(1, 5)]
    assert set(wanted) <= set(CODES)


@pytest.fixture
def shown_in():
    """shown_in(language, reason): the codes of a message of ours with the system's reason."""

    def codes(name, reason):
        language.use(name)
        line = language.tr("{path} cannot be read: {reason}", path="/d/x", reason=language.tr(reason))
        return {entry.code for entry, _ in known_failures.by_lines(ENTRIES, [line])}

    yield codes
    language.use("en")


def test_the_reasons_of_the_system_are_found_in_our_messages_in_chinese_too(shown_in):
    """A trainer of ours writes them into its log, in the language of its user."""
    known = {reason: shown_in("en", reason) for reason in OF_SYSTEM}
    assert len(set().union(*known.values())) > 10
    assert [reason for reason, codes in known.items() if not codes <= shown_in("zh", reason)] == []


APART = 9  # lines between samples: more than those that may be one message


def targets_of(entry):
    """The device targets of launches in which the samples of an entry may come."""
    return entry.targets if entry.code in {one.code for one in of_launches()} else ["Ascend"]


def samples_in(target, kind):
    """[(entry, its sample)] for logs of this kind of launches with this device target."""
    asked = [entry for entry in ENTRIES if kind in entry.logs and target in targets_of(entry)]
    return [(entry, sample) for entry in asked for sample in entry.samples]


@pytest.mark.slow
@for_each("target, kind", itertools.product(known_failures.TARGETS, sorted({kind for e in ENTRIES for kind in e.logs})))
def test_a_sample_is_taken_by_its_own_entry(target, kind):
    """One log has the samples of all entries, so far apart that each is a failure by itself."""
    asked = samples_in(target, kind)
    lines = [line for _, sample in asked for line in ("before", sample, *["after"] * APART)]
    codes = [[] for _ in asked]
    for other, rows in known_failures.by_lines(ENTRIES, lines, target, kind):
        for number in {row // (2 + APART) for row in rows}:
            codes[number].append(other.code)
    none(
        f"{entry.code}: {sample!r} of {target} in {kind}: {found}"
        for (entry, sample), found in zip(asked, codes)
        if found != [entry.code]
    )


def test_every_sample_is_in_such_a_log():
    kinds = {kind for entry in ENTRIES for kind in entry.logs}
    asked = {sample for pair in itertools.product(known_failures.TARGETS, kinds) for _, sample in samples_in(*pair)}
    assert asked == {sample for entry in ENTRIES for sample in entry.samples}


@pytest.mark.slow
def test_the_compiled_table_is_that_of_the_files():
    """If not: python -m tools.logs.known_failures >tools/logs/known_failures.json"""
    with open(known_failures.COMPILED, encoding="utf-8") as file:
        assert file.read() == known_failures.compile_all()


def test_an_edited_file_counts_at_once(monkeypatch, tmp_path):
    edited = tmp_path / "host.yaml"
    edited.write_text("diagnoses: [{code: of-a-site, words: [[our, words]], cause: c, remedy: r}]\n")
    monkeypatch.setattr(known_failures, "FAULTS", (str(edited),))
    entries, complaints = known_failures.load({})
    assert complaints == [] and [entry.code for entry in entries] == [*(e.code for e in of_launches()), "of-a-site"]


def test_what_a_failure_leads_to_is_known():
    codes = {entry.code for entry in ENTRIES}
    assert [(entry.code, set(entry.leads_to) - codes) for entry in ENTRIES if set(entry.leads_to) - codes] == []


@pytest.mark.skipif(not FAULTS, reason="FAULT_LOGS does not name a folder of known faults and real logs")
def test_every_public_fault_is_covered():
    """Each of FAULT_LOGS/known_faults.jsonl belongs to an entry, which takes its words, if no earlier one does."""
    entry_of = {code: entry for entry in ENTRIES for code in (entry.code, *entry.covers)}
    kinds = {
        "CANN_Plog": ["plog"],
        "CANN_Device": ["device"],
        "TrainLog": ["train"],
        "CANN_Plog | OS": ["plog", "host"],
    }
    lines = Path(FAULTS, "known_faults.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 400
    for fault in map(json.loads, lines):
        entry = entry_of[fault["code"]]
        words = fault["match"].get("in", [])
        for alternative in words if words and isinstance(words[0], list) else [words] if words else []:
            for kind in kinds.get(fault["log"], ["host"]):
                found = known_failures.by_lines(ENTRIES, [" ".join(alternative)], None, kind)
                assert found and ENTRIES.index(found[0][0]) <= ENTRIES.index(entry), (fault["code"], kind)


@pytest.mark.parametrize(
    ("target", "line", "codes"),
    [
        ("GPU", "libge_runner.so: cannot open shared object file", []),
        ("GPU", "libcudnn.so.8: cannot open shared object file", ["no-gpu-software"]),
        ("GPU", "libcuda.so.1: cannot open shared object file", ["no-gpu"]),
        ("CPU", "no kernel image is available for execution on the device", []),
        ("CPU", "libother.so: cannot open shared object file", ["import-error"]),
        ("CPU", "RuntimeError: Unsupported device target Ascend.", ["asks-for-ascend"]),
        ("Ascend", "RuntimeError: Unsupported device target Ascend.", ["no-ascend-software"]),
        (None, "RuntimeError: Unsupported device target Ascend.", ["no-ascend-software"]),
    ],
)
def test_a_remedy_is_for_the_device_target_of_the_launch(target, line, codes):
    assert [entry.code for entry, _ in known_failures.by_lines(ENTRIES, [line], target)] == codes


@for_each("entry", ENTRIES, ids=lambda entry: entry.code)
def test_an_entry_is_complete(entry):
    assert entry.samples or not (entry.sources or entry.words)
    assert entry.words or [p.pattern for p in entry.patterns if not any(map(p.search, entry.samples))] == []
    assert all(re.search("[\u4e00-\u9fff]", text) and not text.endswith("。") for text in entry.zh)
    assert all(text.isascii() and not text.endswith(".") for text in (entry.cause, entry.remedy))
    for status in entry.status:
        assert known_failures.by_status(ENTRIES, status, oom_kills=entry.oom_kill) is entry


def test_a_good_log_has_no_known_failure():
    log = ["epoch: 1 step: 8, loss is 2.3026", "accuracy on held-out data: 97.1%", "loss is infinitely better than nan"]
    assert known_failures.by_lines(ENTRIES, log) == []


@pytest.mark.slow
@pytest.mark.parametrize(("language", "page"), [("en", "docs/when_it_fails.md"), ("zh", "docs/zh/when_it_fails.md")])
def test_the_pages_are_what_the_table_says(root, language, page):
    told = "" if language == "en" else " zh"
    assert (root / page).read_text(encoding="utf-8") == known_failures_page.page(language), (
        f"run: python -m tools.pages.known_failures_page{told} > {page}"
    )


def test_the_example_of_the_page_is_a_good_file(tmp_path):
    page = "docs/when_it_fails.md"
    (example,) = (block for block in documents.blocks(page, documents.read(page)) if block.verb == "file")
    path = tmp_path / "mine.yaml"
    path.write_text(example.text, encoding="utf-8")
    entries, complaints = known_failures.load_file(str(path))
    assert ([entry.code for entry in entries], complaints) == (["license-server"], [])


# --- the user's own file ----------------------------------------------------------------------------------------------

MINE = """\
diagnoses:
  - code: mine
    patterns: ['disk .* is full', 'No space left']
    cause: our disk
    remedy: ask Li
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """own(text): the file that LAUNCH_DIAGNOSES names."""

    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        monkeypatch.setenv(known_failures.VARIABLE, str(path))

    return write


def test_entries_of_the_user_come_first(own, explained):
    own(MINE)
    out, _, codes = explained(NO_SPACE)
    assert codes == ["mine"] and "ask Li" in out


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("'disk .* is full'", "'disk (.* is full'", 3, "is not a regular expression"),
        ("cause: our disk", "course: our disk", 2, '"cause" is missing'),
        ("code: mine", "code: my own", 2, "does not fit"),
        ("patterns: ['disk .* is full', 'No space left']", "vague: yes", 2, "neither patterns nor words nor status"),
        ("'disk .* is full'", "'.*'", 3, "matches every line"),
        ("patterns:", "status: [300]\n    patterns:", 3, "too large"),
        ("    cause: our disk\n", "   cause: our disk\n", 4, "not YAML"),
    ],
)
def test_a_mistake_of_the_user_is_told_with_its_line(own, launched, diagnose, old, new, line, told):
    own(MINE.replace(old, new, 1) + "  - {code: also-mine, status: [1], cause: c, remedy: r}\n")
    out, err = diagnose(launched(NO_SPACE))
    assert f"mine.yaml:{line}: " in err and told in err, err
    assert "no-space-left" in out
    assert ("also-mine" in out) == (told != "not YAML")


def test_a_file_of_the_user_that_is_missing_is_told(monkeypatch, launched, diagnose):
    monkeypatch.setenv(known_failures.VARIABLE, "/no/such.yaml")
    out, err = diagnose(launched({"0": (137, "")}))
    assert "/no/such.yaml: no such file" in err
    assert out.startswith("rank 0 (device 0) failed first: exit status 137: ") and "(killed)" in out.splitlines()[0]
