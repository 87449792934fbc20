import json
import sys
import xml.etree.ElementTree as ElementTree

import good_tables
import json_pages
import pytest
from suite.cases import for_each

from hccl_tools.build import merging, this_host
from hccl_tools.commands import build as hccl_tools
from hccl_tools.commands import show as show_hccl
from hccl_tools.common import project
from hccl_tools.show import drawing, overview
from hccl_tools.table import rank_table

SVG = "{http://www.w3.org/2000/svg}"


def cluster(count, size=8):
    tables = [
        rank_table.build([(device, f"192.168.{number}.{device + 1}") for device in range(size)], f"10.0.0.{number:03}")
        for number in range(1, count + 1)
    ]
    return merging.merge([merging.Named(name=str(number), table=table) for number, table in enumerate(tables)])


def pod_table():
    table = rank_table.build([(0, "192.168.1.1"), (1, "192.168.1.2")], "10.0.0.1")
    return this_host.with_super_pod(
        table, this_host.SuperPod(super_pod_id="7", super_device_ids={0: "167772160", 1: "167837697"})
    )


@pytest.fixture
def show(world, in_process, monkeypatch):
    """show(table, "--svg"): the command.

    Text instead of a table goes into the file unchanged.
    """
    monkeypatch.delenv("COLUMNS", raising=False)

    def run_main(table, *arguments):
        text = table if isinstance(table, str) else rank_table.dump(table)
        (world / "t.json").write_text(text, encoding="utf-8", errors="surrogatepass")
        return in_process(show_hccl.main, "t.json", *arguments)

    return run_main


@pytest.fixture
def cells(show):
    """cells(table): the table that is shown, as lists of words, one list per row."""
    pytest.importorskip("rich", reason="needs rich")

    def of(table):
        status, out, err = show(table)
        assert status == 0, err
        return [[cell.strip() for cell in line.split("│")] for line in out.splitlines() if "│" in line]

    return of


# ---- as a table ----------------------------------------------------------------------------------


def test_a_small_table_has_a_line_a_device(cells):
    rows = cells(cluster(2, 2))
    assert rows == [
        ["10.0.0.001", "0", "0", "192.168.1.1"],
        ["", "1", "1", "192.168.1.2"],
        ["10.0.0.002", "2", "0", "192.168.2.1"],
        ["", "3", "1", "192.168.2.2"],
    ]


def test_a_hundred_servers_alike_are_one_line(cells):
    (row,) = cells(cluster(100))
    assert row == ["10.0.0.001 - 10.0.0.100", "100", "0-799", "0-7", "192.168.1.1 - 192.168.100.8"]


def test_servers_that_differ_have_lines_of_their_own(cells):
    tables = [cluster(6), rank_table.build([(0, "192.168.9.1"), (2, "192.168.9.2")], "10.0.0.9")]
    rows = cells(merging.merge([merging.Named(name=str(number), table=table) for number, table in enumerate(tables)]))
    assert [row[:4] for row in rows] == [
        ["10.0.0.001 - 10.0.0.006", "6", "0-47", "0-7"],
        ["10.0.0.9", "1", "48-49", "0,2"],
    ]


def test_super_pods_have_columns_of_their_own_and_are_counted_in_the_headline(show, cells):
    assert cells(pod_table())[1] == ["", "1", "1", "192.168.1.2", "167837697", ""]
    assert cells(pod_table())[0][-1] == "7"
    assert show(pod_table())[1].startswith("version 1.2, servers: 1, ranks: 2, super pods: 1\n")


def test_what_a_table_says_is_no_markup(cells):
    table = cluster(1, 1)
    table["server_list"][0]["server_id"] = "[red]x[/red]\x1b[31m"
    assert cells(table)[0][0] == "[red]x[/red]\\x1b[31m"


@pytest.mark.parametrize(
    "variables", [{"NO_COLOR": "100"}, {"COLUMNS": "100"}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}], ids=str
)
def test_a_stdout_that_is_no_terminal_or_no_color_gets_no_colour(show, monkeypatch, variables):
    pytest.importorskip("rich", reason="needs rich")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert "\x1b[3" not in show(cluster(2))[1]
    assert "FORCE_COLOR" in variables or "\x1b" not in show(cluster(2))[1]


def test_a_rich_that_is_too_old_is_named_with_what_is_needed(show, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9.3.0")
    monkeypatch.delitem(sys.modules, "hccl_tools.show.terminal", raising=False)
    monkeypatch.delattr("hccl_tools.show.terminal", raising=False)
    status, out, err = show(cluster(1))
    assert (status, out) == (2, "")
    assert "the table needs rich 9.4.0 or later; " in err and err.count("\n") == 1


def test_without_rich_the_other_way_is_named(show, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.delitem(sys.modules, "hccl_tools.show.terminal", raising=False)
    monkeypatch.delattr("hccl_tools.show.terminal", raising=False)
    status, out, err = show(cluster(1))
    assert (status, out) == (2, "")
    assert "the table needs rich" in err and err.count("\n") == 1


# ---- bad tables ----------------------------------------------------------------------------------


def test_a_bad_table_is_shown_and_that_it_is_bad_is_said(show):
    status, out, err = show({**cluster(2), "status": "x"}, "--svg")
    assert (status, out[:4]) == (0, "<svg")
    assert err == f"show_hccl.py: t.json: 1 problem; see `python {project.ROOT}/hccl_tools/validate_hccl.py FILE`\n"


@pytest.mark.parametrize("junk", ["{}", "[]", "null", "1", '"x"', '{"server_list": [{}]}', '{"server_list": {}}'])
def test_a_file_without_servers_is_exit_1(show, junk):
    status, out, err = show(junk, "--svg")
    assert (status, out) == (1, "")
    assert "t.json has no ranks that can be shown; see `python " in err


def test_a_file_that_is_not_json_is_exit_1_and_one_that_is_not_there_exit_2(show, in_process):
    status, _, err = show("{", "--svg")
    assert status == 1 and "[not-json]" in err
    status, _, err = in_process(show_hccl.main, "none.json")
    assert status == 2 and err.startswith("show_hccl.py: none.json cannot be read: ")


@for_each("place", ["server_id", "device_id", "device_ip", "rank_id", "device", "super_pod_list", "server_list"])
@for_each("value", [None, 1, [], {}, "", True, [None], [[]], "9" * 30, '<&"\ud800\x00'])
def test_whatever_a_field_holds_something_is_said_and_nothing_raised(show, place, value):
    table = json.loads(rank_table.dump(pod_table()))
    server = table["server_list"][0]
    for owner in (table, server, server["device"][0], table["super_pod_list"][0]):
        if place in owner:
            owner[place] = value
    status, out, _ = show(json.dumps(table), "--svg")
    assert status in (0, 1)
    if status == 0:
        ElementTree.fromstring(out)


# ---- as a drawing --------------------------------------------------------------------------------


def drawn(table, generation=None):
    """(classes of all shapes, texts) of the drawing."""
    root = ElementTree.fromstring(drawing.svg(overview.of(table, generation)))
    return [shape.get("class") for shape in root.iter(SVG + "rect")], [text.text for text in root.iter(SVG + "text")]


def test_a_drawing_has_a_box_a_server_and_one_a_device_with_its_rank():
    shapes, texts = drawn(cluster(2))
    assert (shapes.count("server"), shapes.count("device")) == (2, 16)
    assert {str(rank) for rank in range(16)} <= set(texts)
    assert "10.0.0.002" in texts and "ranks 8-15" in texts


@pytest.mark.parametrize(("generation", "groups"), [("910A", 2), ("A2", 1), (None, 1), ("A3", 4)])
def test_a_drawing_has_the_groups_of_the_generation(generation, groups):
    assert drawn(cluster(1), generation)[0].count("group") == groups


def test_a_drawing_of_a_hundred_servers_alike_is_one_box():
    shapes, texts = drawn(cluster(100))
    assert (shapes.count("server"), shapes.count("device")) == (1, 8)
    assert "100 servers, ranks 0-799" in texts


def test_a_drawing_names_the_super_pod_and_escapes_what_a_table_says():
    assert "ranks 0-1, super pod 7" in drawn(pod_table())[1]
    table = cluster(1)
    table["server_list"][0]["server_id"] = "<b>&\"'\x00"
    assert "<b>&\"'\\x00" in drawn(table)[1]


def test_nothing_is_drawn_beyond_the_edge():
    root = ElementTree.fromstring(drawing.svg(overview.of(cluster(12), "910A")))
    for group in root.findall(SVG + "g"):
        x, y = map(float, group.get("transform")[len("translate(") : -1].split(","))
        box = group.find(SVG + "rect")
        assert x + float(box.get("width")) <= float(root.get("width"))
        assert y + float(box.get("height")) <= float(root.get("height"))


# ---- in few words --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "words"), [("01238", "0-3,8"), ("02", "0,2"), ("645", "6,4-5"), ("ab", "a,b"), ("0-1", "0,-,1"), ("", "")]
)
def test_ranges_are_numbers_in_few_words(texts, words):
    assert overview.ranges(list(texts)) == words


# ---- as a program --------------------------------------------------------------------------------


def test_hccl_tools_show_is_the_same_command(world, in_process):
    (world / "t.json").write_text(rank_table.dump(cluster(1)))
    status, out, _ = in_process(hccl_tools.main, "show", "t.json", "--svg")
    assert (status, out[:4]) == (0, "<svg")
    status, _, err = in_process(hccl_tools.main, "show", "none.json")
    assert status == 2 and err.startswith("hccl_tools.py show: ")


# ---- for a program, and from a pipe --------------------------------------------------------------


def test_json_has_every_device(show):
    status, out, err = show(cluster(2), "--json")
    shown = json.loads(out)
    assert (status, err, shown["servers"], shown["ranks"]) == (0, "", 2, 16)
    assert shown["server_list"][1]["devices"][7] == {
        **{"rank_id": 15, "device_id": 7, "device_ip": "192.168.2.8", "super_device_id": None},
    }
    in_pod = json.loads(show(pod_table(), "--json")[1])
    assert in_pod["server_list"][0]["super_pod_id"] == "7"
    assert in_pod["server_list"][0]["devices"][0]["super_device_id"] == 167772160
    status, out, err = show({**cluster(1), "status": "x"}, "--json")
    assert (status, len(json.loads(out)["warnings"])) == (0, 1) and err.startswith("show_hccl.py: t.json: 1 problem")
    ranks = json.loads(show(good_tables.rank_list(), "--json")[1])
    json_pages.check("show_hccl.py", shown, in_pod, json.loads(out), ranks)


@pytest.mark.parametrize("words", [["--format", "svg"], ["--format=svg"], ["--json", "--format", "svg"]])
def test_the_drawing_of_earlier_versions(show, words):
    assert show(cluster(2), *words)[1] == show(cluster(2), "--svg")[1]


def test_one_document_at_a_time(show):
    status, out, err = show(cluster(2), "--svg", "--json")
    assert (status, out) == (2, "") and "--svg and --json print two different documents" in err


def test_the_generation_any_draws_no_groups(show):
    assert show(cluster(1), "--svg", "--generation", "any")[1] == show(cluster(1), "--svg")[1]


def test_it_reads_standard_input(show, in_process, world, stdin):
    (world / "u.json").write_text(rank_table.dump({**cluster(1), "status": "x"}))
    stdin(world / "u.json")
    status, out, err = in_process(show_hccl.main, "-", "--json")
    assert (status, json.loads(out)["file"]) == (0, "-")
    assert err.startswith("show_hccl.py: standard input: 1 problem; ")
