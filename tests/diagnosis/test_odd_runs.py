"""Run folders in which anything is odd: the diagnosis says what it can, and never ends with a traceback."""

import copy
import json
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.diagnosis import find, main
from tools.launch import record
from tools.logs import known_failures

ENTRIES = known_failures.load()
_FIXTURE = [HealthCheck.function_scoped_fixture]

_odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**300), 10**300),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["0", "²", "٣", "9" * 5000, "../../..", "scheduler", "\0", "\ud800", "rank_0"]),
    st.recursive(st.none(), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner)),
)


def places(value):
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


@pytest.mark.thorough
@settings(max_examples=200, deadline=None, suppress_health_check=_FIXTURE)
@given(st.data())
def test_no_launch_json_makes_the_diagnosis_raise(launched, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("odd")
    (folder / "rank_0.log").write_bytes(data.draw(st.binary(max_size=60)))
    document = copy.deepcopy(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        owner, key = data.draw(st.sampled_from(list(places(document))))
        if isinstance(owner, dict) and data.draw(st.booleans()):
            owner[data.draw(st.sampled_from(["0", "²", "٣", "9" * 5000, "../x", "\0"]))] = owner.pop(key)
        else:
            owner[key] = data.draw(_odd)
    (folder / "launch.json").write_text(json.dumps(document), encoding="utf-8")
    assert main.explain_run(str(folder), ENTRIES, 0) in (0, 1, 2)


GOOD = {
    "device_target": "CPU",
    "outcome": {
        "exit": 1,
        "first_failure": "0",
        "also_failed": ["1"],
        "stopped_by": "hang",
        "logs": ".",
        "members": {"0": {"status": 1, "seconds": 1.0}, "1": {"status": 3, "seconds": 1.0}},
    },
}

DAMAGED = ["", "{", "[]", "null", "[" * 9999, "9" * 5000, '{"a": ' * 400 + "1" + "}" * 400, "\0", None]


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_launch_json_is_said_by_whatever_reads_it(tmp_path, capsys, text):
    path = tmp_path / "launch.json"
    path.mkdir() if text is None else path.write_text(text)
    assert main.explain_run(str(tmp_path), ENTRIES, 0) == 2
    assert "launch.json" in capsys.readouterr().err
    if text is None or not text.startswith('{"a"'):
        assert "launch.json: " in record.save_outcome(str(tmp_path), [{}])


@pytest.mark.parametrize(
    "change", [{"first_failure": "../0"}, {"first_failure": "/tmp/0"}, {"logs": "../other"}], ids=str
)
def test_no_file_outside_of_the_run_is_read(tmp_path, capsys, change):
    run_dir, other = tmp_path / "run", tmp_path / "other"
    for folder in (run_dir, other):
        folder.mkdir()
    for path in (tmp_path / "0.log", other / "rank_0.log"):
        path.write_text('Traceback (most recent call last):\n  File "t.py", line 1\nValueError: foreign\n')
    launch = {**GOOD, "outcome": {**GOOD["outcome"], **change}}
    (run_dir / "launch.json").write_text(json.dumps(launch))
    main.explain_run(str(run_dir), ENTRIES, 0)
    assert "foreign" not in "".join(capsys.readouterr())


def test_a_document_of_too_many_levels_is_not_written(tmp_path, capsys):
    (tmp_path / "launch.json").write_text("{}")
    deep: object = 1
    for _ in range(200_000):  # more than any Python follows
        deep = [deep]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # other tests raise it
    try:
        find.save({"exports": deep}, str(tmp_path))
    finally:
        sys.setrecursionlimit(limit)
    assert "the diagnosis could not be added: it is nested too deeply" in capsys.readouterr().err
    assert (tmp_path / "launch.json").read_text() == "{}"


@pytest.mark.parametrize("pattern", ["(" * 5000, "a{99999999999999999999}", "(?P<", "[", "*"], ids=range(5))
def test_a_pattern_of_the_user_that_is_none_is_said(tmp_path, pattern):
    path = tmp_path / "own.yaml"
    path.write_text(json.dumps({"diagnoses": [{"code": "x", "cause": "c", "remedy": "r", "patterns": [pattern]}]}))
    entries, (line,) = known_failures.load_file(str(path))
    assert entries == [] and "is not a regular expression: " in line and len(line) < 400
