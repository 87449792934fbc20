"""Metrics as text for Prometheus, read by its own parser, and as JSON; and the dashboard that uses them."""

import json
import math
import re

import pytest
from documents import ROOT
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tools.monitor import formats, metrics
from tools.monitor.metrics import PREFIX, Failure, Family
from tools.progress.ranks import RankProgress
from tools.progress.slowness import STEP, Pace

DASHBOARD = ROOT / "docs" / "grafana_dashboard.json"
# promtool check metrics: units that are not base units, and parts of names that belong to other types.
NOT_BASE = re.compile(r"(millisecond|microsecond|minute|hour|day|_ms|_kb|_mb|percent)")


def progress(rank, step=None, loss=None, **values):
    one = RankProgress(rank, f"/nowhere/rank_{rank}.log")
    one.tail.there, one.grown = True, 90.0
    numbers = {**values, **({} if loss is None else {"loss": loss}), **({} if step is None else {"step": step})}
    one.take({"epoch": 1, **numbers} if numbers else {}, 0.0)
    return one


def facts(count=2, **more):
    """The facts of a job whose ranks have every number."""
    every = {"step": 7, "loss": 0.5, "step_ms": 25.0, "before_ms": 20.0, "data_ms": 1.0, "samples_per_s": 100.0}
    found = {rank: progress(rank, **every) for rank in range(count)}
    known = {
        **{"run": "run-1", "script": "ascend4p.sh", "host": "node1", "device_target": "CPU", "started": 1e9},
        **{"now": 1e9 + 60, "clock": 100.0, "restarts": 2, "failure": Failure("1", "node1", 137, 1)},
        **{"ended": (1e9 + 60, 137), "places": {rank: (str(rank), "node1") for rank in range(count)}, "ranks": found},
        **{"runs": dict.fromkeys(range(count), True), "stragglers": 1},
        "paces": {rank: Pace(STEP, 25.0, 20.0, 1 + rank / 100, None) for rank in range(count)},
    }
    return metrics.Facts(**{**known, **more})


def parsed(families):
    """{(name, its labels): value} as Prometheus reads them."""
    text = formats.prometheus("run-1", families)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found, name, **labels):
    (wanted,) = [
        number
        for (full, pairs), number in found.items()
        if full == PREFIX + name and labels.items() <= dict(pairs).items()
    ]
    return wanted


def test_prometheus_reads_every_metric_with_type_and_help():
    families = metrics.families(facts())
    text = formats.prometheus("run-1", families)
    assert len(parsed(families)) == sum(len(family.samples) for family in families)
    read = list(text_string_to_metric_families(text))
    assert len(read) == len(families)
    assert all(family.documentation and family.type in ("gauge", "counter") for family in read)
    found = parsed(families)
    assert value(found, "restarts_total") == 2 and value(found, "exit_code") == 137
    assert value(found, "rank_step_seconds", rank="1", host="node1", device="1") == 0.025
    assert value(found, "rank_silence_seconds", rank="1") == 10.0
    assert value(found, "last_failure_info", rank="1", exit_code="137", attempt="1") == 1
    assert value(found, "ranks_loss", stat="median") == 0.5 and value(found, "ranks_loss_not_finite") == 0


def test_names_are_as_promtool_wants_them():
    for family in metrics.families(facts()):
        name = PREFIX + family.name
        assert re.fullmatch("[a-z][a-z0-9_]*", name) and not NOT_BASE.search(name), name
        assert name.endswith("_total") == (family.kind == "counter"), name
        assert not name.endswith(("_count", "_sum", "_bucket")) and family.kind not in name, name
        for labels, _ in family.samples:
            assert all(re.fullmatch("[a-z][a-z0-9_]*", label) for label in labels)


def test_a_job_that_has_said_nothing_yet_has_no_numbers():
    families = metrics.families(
        facts(
            ranks={rank: progress(rank) for rank in range(2)}, runs={}, paces={}, failure=None, ended=None, started=None
        )
    )
    found = parsed(families)
    assert value(found, "ranks_unseen") == 2 and value(found, "ranks_up") == 0 and value(found, "running") == 1
    names = {family.name for family in families}
    assert "rank_silence_seconds" not in names  # on another host: a rank's log here is one line of ours
    assert not names & {
        "exit_code",
        "end_time_seconds",
        "start_time_seconds",
        "last_failure_info",
        "rank_up",
        "rank_loss",
    }


def test_nan_and_infinity():
    ranks = {
        0: progress(0, 1, math.nan),
        1: progress(1, 1, math.inf),
        2: progress(2, 1, 0.5),
        3: progress(3, 1, -math.inf),
    }
    families = metrics.families(facts(4, ranks=ranks))
    found = parsed(families)
    assert math.isnan(value(found, "rank_loss", rank="0")) and value(found, "rank_loss", rank="1") == math.inf
    assert value(found, "ranks_loss", stat="max") == 0.5 and value(found, "ranks_loss_not_finite") == 3

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    document = json.loads(formats.json_line(families), parse_constant=refuse)
    assert [rank["loss"] for rank in document["ranks"]] == ["NaN", "+Inf", 0.5, "-Inf"]


def test_with_many_ranks_the_file_stays_small():
    few, many = metrics.families(facts(metrics.MOST_RANKS)), metrics.families(facts(metrics.MOST_RANKS + 1))
    assert len(formats.prometheus("run-1", few).splitlines()) > metrics.MOST_RANKS * 10
    assert len(formats.prometheus("run-1", many).splitlines()) < 300
    (family,) = [family for family in many if family.name == "rank_slowness_ratio"]
    assert [labels["rank"] for labels, _ in family.samples] == [str(rank) for rank in range(1009, 1025)]
    assert "16 slowest" in family.help and "more than 1024" in family.help
    assert value(parsed(many), "ranks_expected") == 1025


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=formats.MOST_LABEL))
def test_a_label_is_read_as_it_was(text):
    assert [dict(labels)["host"] for _, labels in parsed([Family("info", "gauge", "x", [({"host": text}, 1)])])] == [
        text
    ]


def test_a_job_with_hostile_names():
    name = 'a"b\\c\nd\udcff{}, '
    found = facts(
        1, script=name * 1000, host=name, places={0: (name, name)}, run=name, failure=Failure(name, name, 1, 0)
    )
    families = metrics.families(found)
    text = formats.prometheus(name, families)
    assert text.encode("utf-8", "replace") and text.startswith("# mindspore_launch metrics, run a")
    assert len(parsed(families)) == sum(len(family.samples) for family in families)
    line = formats.json_line(families)
    assert json.loads(line)["info"]["host"] == name and line.count("\n") == 1


# --- the dashboard


def test_the_dashboard_uses_metrics_that_are_written():
    text = DASHBOARD.read_text(encoding="utf-8")
    used = set(re.findall(rf"{PREFIX}[a-z_]+", text))
    written = {PREFIX + family.name for family in metrics.families(facts())}
    assert used - written == set() and len(used) > 10


def test_the_dashboard_is_one():
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers) > 8 and dashboard["schemaVersion"] >= 39
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource" and "run" in variables
    places = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places, panel["title"]
        places |= cells
        assert panel["datasource"]["uid"] == "${datasource}" and panel["title"] and panel["description"]
        assert panel["targets"] and all('run=~"$run"' in target["expr"] for target in panel["targets"])
        for target in panel["targets"]:
            legend = set(re.findall(r"{{(\w+)}}", target.get("legendFormat", "")))
            assert legend <= {"run", "rank", "host", "device", "stat", "exit_code"}


@pytest.mark.parametrize("page", ["docs/metrics.md", "docs/zh/metrics.md"])
def test_the_page_names_metrics_that_are_written(page):
    words = set(re.findall(rf"{PREFIX}[a-z_]+[a-z]", (ROOT / page).read_text(encoding="utf-8")))
    written = {PREFIX + family.name for family in metrics.families(facts())}
    assert words - written <= {PREFIX + "metrics"} and written - words == set()
