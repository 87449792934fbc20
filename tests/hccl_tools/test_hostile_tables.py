"""Tables of every format in which a value is hostile: the verdict is lines, never an exception, and stays short."""

import json

import good_tables
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_tools.check import verdict

GOOD = {
    "1.0": good_tables.servers(2, 2),
    "1.1": good_tables.heterogeneous(),
    "1.2": good_tables.super_pods(),
    "2.0": good_tables.rank_list(),
    "cross cluster": good_tables.clusters(),
    "lab": good_tables.lab(),
    "cloud": good_tables.cloud(),
}

# JSON as text: Python's json cannot write all of it
HOSTILE = [
    *("1e999", "-1e999", "NaN", "9" * 4000, "9" * 5000, "1.5", "2.0", "-0.0", "1E-5", "1e20", "true", "null", '""'),
    *("[]", "{}", "[[]]", '{"a": 1, "a": 2}', "[" * 200 + "]" * 200, "[" * 980 + "]" * 980, "[" * 99999 + "]" * 99999),
    *('"\\ud800"', '"\\u0000"', '"\\u2028"', '"²"', '"٣"', '"1_0"', '"0x10"', f'"{"9" * 5000}"', f'"{"x" * 9999}"'),
]


def places(value):
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


@pytest.mark.slow
@pytest.mark.parametrize("name", GOOD)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_value_in_a_table_of_any_format_makes_checking_raise(name, data):
    table = json.loads(json.dumps(GOOD[name]))
    chosen = {}
    for number in range(data.draw(st.integers(1, 3))):
        owner, key = data.draw(st.sampled_from(list(places(table))))
        owner[key] = f"@{number}@"
        chosen[f'"@{number}@"'] = data.draw(st.sampled_from(HOSTILE))
    text = json.dumps(table)
    for mark, value in chosen.items():
        text = text.replace(mark, value)
    generation = data.draw(st.sampled_from([None, "910A", "A2", "A3", "950"]))
    _, found = verdict.check_bytes(text.encode("utf-8", "surrogatepass"), generation)
    for problem in found:
        line = problem.line("table.json")
        assert line.isprintable() and len(line) < 2000
