"""Properties that hold for every table, not only for those that somebody thought of.

PROPERTY_EXAMPLES is the number of examples a property is tried with (100).
"""

import json
import os
import random

import pytest
from suite.cases import for_each

pytest.importorskip("hypothesis", reason="needs hypothesis")
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hccl_tools.build import merging, this_host
from hccl_tools.check import rules, schema_check, verdict
from hccl_tools.common.problem import errors
from hccl_tools.common.refusal import Refusal
from hccl_tools.compare import changes, side
from hccl_tools.convert import filling, reading, writing
from hccl_tools.convert import job as convert_job
from hccl_tools.table import rank_table

pytestmark = pytest.mark.thorough

settings.register_profile(
    "ours",
    max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "100")),
    deadline=None,  # the machine may be busy
    database=None,  # nothing is left in the folder
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ours")

SCHEMA = schema_check.load_schema("rank_table_v1.0")
JUDGE = Draft202012Validator(SCHEMA)


# ---- good tables ---------------------------------------------------------------------------------


@st.composite
def singles(draw, least=1, most=4, size=8, pods=False):
    """A list of good tables of one server each, which can be merged."""
    numbers = draw(st.lists(st.integers(1, 250), min_size=least, max_size=most, unique=True))
    six = draw(st.booleans())
    tables = []
    for number in numbers:
        ids = draw(st.lists(st.integers(0, 15), min_size=1, max_size=size, unique=True))
        devices = [(n, f"fd00::{number:x}:{n + 1:x}" if six else f"192.168.{number}.{n + 1}") for n in ids]
        table = rank_table.build(devices, f"10.0.0.{number}")
        if pods:
            pod = this_host.SuperPod(super_pod_id="pod", super_device_ids={n: str((number << 22) + n) for n in ids})
            table = this_host.with_super_pod(table, pod)
        extra = draw(st.dictionaries(st.sampled_from(["rack", "x"]), junk, max_size=2))
        table["server_list"][0].update(printing(extra))
        tables.append(table)
    return tables


def printing(value):
    """The same with texts that print, as those of a good table do."""
    if isinstance(value, dict):
        return {key: printing(each) for key, each in value.items()}
    if isinstance(value, list):
        return [printing(each) for each in value]
    return "".join(filter(str.isprintable, value)) if isinstance(value, str) else value


def named(tables):
    return [merging.Named(name=f"{number}.json", table=table) for number, table in enumerate(tables)]


def parsed(table):
    document, problems = rank_table.parse(rank_table.dump(table).encode("utf-8", "surrogatepass"))
    assert problems == []
    return document


# Text as JSON files have it; a lone surrogate cannot be written as UTF-8 and is tried below.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.sampled_from(
        ["0", "1", "01", "-1", "1.0", "1.2", "2.0", "completed", "10.0.0.1", "::1", "9" * 11, "", "\ud800"]
    ),
)
KEYS = [
    *("version", "status", "server_count", "server_list", "server_id", "host_ip", "device", "device_id", "device_ip"),
    *("rank_id", "device_port", "host_port", "super_device_id", "super_pod_list", "super_pod_id", "group_list"),
    *("rank_list", "rank_count", "server_group_list", "prefill_device_list", "level_list", "group_count", "devices"),
]
junk = st.one_of(texts, st.integers(), st.booleans(), st.none(), st.lists(st.integers(), max_size=2))
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(st.sampled_from(KEYS), texts), inner, max_size=6)
    ),
    max_leaves=20,
)


@given(singles(most=1), st.sampled_from([None, "910A", "A2", "A3"]))  # 950 takes version 2.0 only
def test_what_is_built_is_read_back_and_is_good(tables, generation):
    assume(generation != "910A" or rules.group_problem_910a(sorted(map(int, device_ids(tables[0])))) is None)
    assert parsed(tables[0]) == tables[0]
    assert errors(verdict.check(parsed(tables[0]), generation)) == []


def device_ids(table):
    return [device["device_id"] for device in table["server_list"][0]["device"]]


@given(singles())
def test_what_is_merged_is_read_back_and_is_good(tables):
    merged = merging.merge(named(tables))
    assert parsed(merged) == merged
    assert errors(verdict.check(merged, None)) == []


# ---- merging -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pods", "join"), [(False, merging.merge), (True, merging.combine)], ids=["1.0", "1.2"])
@given(data=st.data())
def test_merging_depends_neither_on_order_nor_on_steps(pods, join, data):
    tables = data.draw(singles(least=3, pods=pods))
    whole = rank_table.dump(join(named(tables)))
    assert rank_table.dump(join(named(data.draw(st.permutations(tables))))) == whole
    cut = data.draw(st.integers(1, len(tables) - 1))
    left, right = join(named(tables[:cut])), join(named(tables[cut:]))
    assert rank_table.dump(join(named([left, right]))) == whole
    assert rank_table.dump(join(named([right, left]))) == whole


@given(singles(), st.data())
def test_merging_changes_nothing_but_ranks_and_counts(tables, data):
    merged = merging.merge(named(tables))
    before = {server["server_id"]: server for table in tables for server in table["server_list"]}
    after = {server["server_id"]: server for server in merged["server_list"]}
    assert without_ranks(before) == without_ranks(after)
    assert list(after) == sorted(before)


def without_ranks(servers):
    return {
        name: {**server, "device": [{**device, "rank_id": None} for device in server["device"]]}
        for name, server in servers.items()
    }


@given(singles(least=2), st.data())
def test_merging_twice_the_same_server_is_refused(tables, data):
    again = data.draw(st.sampled_from(tables))
    with pytest.raises(merging.Refused):
        merging.merge(named([*tables, again]))
    with pytest.raises(merging.Refused):
        merging.merge(named([merging.merge(named(tables)), again]))


# ---- every single mistake is caught --------------------------------------------------------------


def put(place, key, value):
    """A mutation: `key` of a place ("table", "server" or "device", any of them) becomes `value`."""

    def mutate(table, pick):
        pick(table, place)[key] = value

    return mutate


def drop(place, key):
    def mutate(table, pick):
        del pick(table, place)[key]

    return mutate


def copy_of_another(place, key):
    """`key` of one place becomes what it is in another place of the same kind (devices: same server)."""

    def mutate(table, pick):
        server = pick(table, "server of many" if place == "device" else "table")
        entries = server["device"] if place == "device" else table["server_list"]
        entries[-1][key] = entries[0][key]

    return mutate


def last_rank_leaves_a_gap(table, pick):
    ranked(table)[-1]["rank_id"] = str(len(ranked(table)))


def ranks_swap_servers(table, pick):
    first, last = ranked(table)[0], ranked(table)[-1]
    first["rank_id"], last["rank_id"] = last["rank_id"], first["rank_id"]


def ranked(table):
    devices = [device for server in table["server_list"] for device in server["device"]]
    return sorted(devices, key=lambda device: int(device["rank_id"]))


def other_family(table, pick):
    device = ranked(table)[-1]
    device["device_ip"] = "192.168.251.1" if ":" in device["device_ip"] else "fd01::1"


FIELDS = {
    "table": ("version", "server_count", "server_list", "status"),
    "server": ("server_id", "device"),
    "device": ("device_id", "device_ip", "rank_id"),
}
UNIQUE = [("server", "server_id", "server"), ("device", "device_id", "device"), ("device", "device_ip", "address")]
UNIQUE.append(("device", "rank_id", "rank"))
MUTATIONS = {
    **{f"{key} missing": ("missing-field", drop(place, key)) for place, keys in FIELDS.items() for key in keys},
    **{f"{place}'s {key} twice": (f"duplicate-{what}", copy_of_another(place, key)) for place, key, what in UNIQUE},
    "version a number": ("wrong-type", put("table", "version", 1.0)),
    "version unknown": ("bad-version", put("table", "version", "9.9")),
    "server_count a number": ("wrong-type", put("table", "server_count", 2)),
    "server_count another": ("count-mismatch", put("table", "server_count", "9")),
    "server_count with a zero before it": ("bad-value", put("table", "server_count", "02")),
    "server_list empty": ("bad-value", put("table", "server_list", [])),
    "server_list an object": ("wrong-type", put("table", "server_list", {})),
    "status another": ("bad-status", put("table", "status", "initializing")),
    "status null": ("wrong-type", put("table", "status", None)),
    "server_id a number": ("wrong-type", put("server", "server_id", 10)),
    "server_id empty": ("bad-value", put("server", "server_id", "")),
    "server_id too long": ("bad-value", put("server", "server_id", "s" * 65)),
    "server_id a placeholder": ("bad-address", put("server", "server_id", "10.*.*.*")),
    "device empty": ("bad-value", put("server", "device", [])),
    "device_id a number": ("wrong-type", put("device", "device_id", 0)),
    "device_id negative": ("bad-value", put("device", "device_id", "-1")),
    "device_id too large": ("bad-value", put("device", "device_id", "65")),
    "device_ip null": ("wrong-type", put("device", "device_ip", None)),
    "device_ip none": ("bad-address", put("device", "device_ip", "192.168.100.300")),
    "device_ip with zeros": ("bad-address", put("device", "device_ip", "192.168.001.001")),
    "device_ip 0.0.0.0": ("bad-address", put("device", "device_ip", "0.0.0.0")),
    "device_ip of the other family": ("mixed-family", other_family),
    "rank_id a number": ("wrong-type", put("device", "rank_id", 0)),
    "rank_id with a zero before it": ("bad-value", put("device", "rank_id", "00")),
    "a gap in the ranks": ("rank-gap", last_rank_leaves_a_gap),
    "ranks that interleave": ("rank-interleave", ranks_swap_servers),
    "a port that is none": ("bad-value", put("device", "device_port", "65536")),
}


@for_each("kind", MUTATIONS)
@settings(max_examples=max(1, settings().max_examples // 20))
@given(data=st.data())
def test_every_single_mistake_is_caught_with_its_code(kind, data):
    tables = data.draw(singles(least=2).filter(lambda found: all(len(device_ids(table)) > 1 for table in found)))
    table = parsed(merging.merge(named(tables)))
    code, mutate = MUTATIONS[kind]

    def pick(document, place):
        if place == "table":
            return document
        server = data.draw(st.sampled_from(document["server_list"]))
        return data.draw(st.sampled_from(server["device"])) if place == "device" else server

    mutate(table, pick)
    assert code in {problem.code for problem in verdict.check(table)}


# ---- nothing raises ------------------------------------------------------------------------------


def judge(data):
    """Reads and checks bytes as the commands do; whatever they are, the answer is a list of problems."""
    document, problems = rank_table.parse(data)
    for generation in (None, *rules.GENERATIONS):
        problems = problems + (verdict.check(document, generation) if not problems else [])
    for problem in problems:
        assert len(problem.line("t.json").splitlines()) == 1
    return document


@st.composite
def spoilt(draw):
    """A good table in which one place, or a few, became something else."""
    table = parsed(merging.merge(named(draw(singles(most=2, size=2)))))
    for _ in range(draw(st.integers(1, 3))):
        places = list(containers(table))
        owner = draw(st.sampled_from(places))
        keys = list(owner) if isinstance(owner, dict) else list(range(len(owner)))
        if keys:
            owner[draw(st.sampled_from(keys))] = draw(documents)
    return table


def containers(value):
    if isinstance(value, (dict, list)):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers(inner)


def as_bytes(document):
    return json.dumps(document, ensure_ascii=True).encode()


@given(st.binary())
def test_no_bytes_make_reading_raise(data):
    judge(data)


@given(singles(most=1), st.data())
def test_no_cut_or_changed_byte_makes_reading_raise(tables, data):
    text = bytearray(rank_table.dump(tables[0]).encode())
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    for _ in range(chance.randint(1, 4)):
        text[chance.randrange(len(text))] = chance.randrange(256)
    judge(bytes(text[: chance.randint(1, len(text))] if chance.random() < 0.3 else text))


@given(documents)
def test_no_json_makes_checking_raise(document):
    judge(as_bytes(document))


@given(spoilt())
def test_no_spoilt_table_makes_checking_raise(table):
    judge(as_bytes(table))


@for_each("place", ["{}", '{{"version": {}}}', '{{"version": "1.0", "server_list": {}}}'])
@for_each("depth", [100, 900, 950, 990, 20_000])
def test_no_depth_of_nesting_makes_judging_for_a_merge_raise(place, depth):
    document, problems = rank_table.parse(place.format("[" * depth + "]" * depth).encode())
    assert problems or errors(verdict.check(document))


# ---- the quick yes and the judge -----------------------------------------------------------------


@given(st.one_of(documents, spoilt()))
def test_the_quick_yes_and_jsonschema_agree(document):
    assert schema_check.accepts(document, SCHEMA) == JUDGE.is_valid(document)


@given(singles())
def test_the_quick_yes_is_said_to_every_good_table(tables):
    merged = merging.merge(named(tables))
    assert schema_check.accepts(merged, SCHEMA)
    assert JUDGE.is_valid(merged)


@given(st.one_of(documents, spoilt()))
def test_merging_refuses_or_merges_and_never_raises_anything_else(document):
    try:
        merged = merging.merge(named([document]))
    except merging.Refused as refused:
        assert refused.lines and all(len(line.splitlines()) == 1 for line in refused.lines)
    else:
        assert errors(verdict.check(merged, None)) == []


# ---- comparing and converting --------------------------------------------------------------------


def differing(one, other):
    """The changes from one table to another, but for the format and the names of servers."""
    sides = [side.of(as_bytes(table), name) for table, name in ((one, "a"), (other, "b"))]
    return [each for each in changes.compare(*sides).changes if each.kind not in ("format", "server-renamed")]


def as_format(table, target, facts=None):
    """The table in another format; None where it says too little.  Its pods and job have a name."""
    job, _ = reading.read(as_bytes(table), "t.json")
    if facts is not None:
        job = filling.filled(job, filling.Facts(name="f.json", job=reading.of_table(facts)), target)
    names = {"v1.1": "collective_id", "legacy_cloud": "group_name"}
    job = job.replace(head={**job.head, names[target]: "x"}) if target in names else job
    try:
        found = writing.write(convert_job.only(job, target)[0], target, target)
    except Refusal:
        return None
    return found if errors(verdict.check(found)) == [] else None


FEWER = settings(max_examples=max(1, settings().max_examples // 5))  # each makes and reads several tables
TARGETS = [name for name in writing.TARGETS.values() if name != convert_job.HOSTS]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("pods", [False, True], ids=["1.0", "1.2"])
@FEWER
@given(data=st.data())
def test_a_table_means_the_same_in_another_format_and_back(pods, target, data):
    singly = data.draw(singles(most=3, pods=pods))
    table = merging.combine(named(singly)) if pods else merging.merge(named(singly))
    found = as_format(table, target)
    if found is None:
        assert target in ("v2.0", "legacy_lab", "legacy_cloud")  # networks; device_id from 8 on, and ranks of its own
        return
    assert [each for each in differing(table, found) if each.data.get("key") not in ("group_name", "rack", "x")] == []
    back = as_format(found, "v1.2" if pods else "v1.0", facts=table)
    assert differing(table, back) == []


@FEWER
@given(singles(), st.data())
def test_a_list_of_hosts_and_the_old_table_make_the_table_again(tables, data):
    table = merging.merge(named(tables))
    job, _ = reading.read(as_bytes(table), "t.json")
    text = writing.write(convert_job.only(job, convert_job.HOSTS)[0], convert_job.HOSTS, "")
    hosts, lost = reading.read(text.encode(), "hosts")
    assert lost == []
    again = filling.filled(hosts, filling.Facts(name="t.json", job=job), "v1.0")
    assert differing(table, writing.write(convert_job.only(again, "v1.0")[0], "v1.0", "")) == []


@FEWER
@given(singles(), st.data())
def test_another_order_means_the_same_and_another_value_does_not(tables, data):
    table = merging.merge(named(tables))
    other = parsed(table)
    other["server_list"] = data.draw(st.permutations(other["server_list"]))
    for server in other["server_list"]:
        server["device"] = data.draw(st.permutations(server["device"]))
    assert differing(table, other) == differing(other, table) == []
    server = data.draw(st.sampled_from(other["server_list"]))
    device = data.draw(st.sampled_from(server["device"]))
    key, value = data.draw(st.sampled_from([("device_ip", "10.77.0.1"), ("device_id", "31"), ("device_port", "1")]))
    device[key] = value
    assert differing(table, other) != [] and differing(other, table) != []


@FEWER
@given(singles(least=2), st.data())
def test_two_ranks_that_change_places_are_a_difference(tables, data):
    table = merging.merge(named(tables))
    other = parsed(table)
    one, two = data.draw(st.permutations(ranked(other)))[:2]
    one["rank_id"], two["rank_id"] = two["rank_id"], one["rank_id"]
    (kinds, ranks) = zip(*((each.kind, each.data["a"]) for each in differing(table, other)))
    assert set(kinds) == {"ranks-renumbered"}
    assert sorted(rank for run in ranks for rank in run) == sorted(int(each["rank_id"]) for each in (one, two))


@FEWER
@given(singles(least=2), st.data())
def test_a_server_that_is_gone_is_named_both_ways(tables, data):
    gone = data.draw(st.sampled_from(tables))
    less = merging.merge(named([table for table in tables if table is not gone]))
    whole = merging.merge(named(tables))
    for one, other, kind in ((whole, less, "server-removed"), (less, whole, "server-added")):
        (found,) = (each for each in differing(one, other) if each.kind.startswith("server-"))
        assert (found.kind, found.data["server"]) == (kind, gone["server_list"][0]["server_id"])


@FEWER
@given(st.one_of(documents, spoilt()), singles(most=1))
def test_no_document_makes_comparing_or_converting_raise_anything_but_a_refusal(document, tables):
    for work in (
        lambda: differing(document, tables[0]),
        *(lambda target=target: as_format(document, target) for target in writing.TARGETS.values()),
    ):
        try:
            work()
        except Refusal as refused:
            assert refused.lines and all(len(line.splitlines()) == 1 for line in refused.lines)
