"""Where the ranks ran, on the page: a cell a rank, hosts with a problem, the rank table; and the environment."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from hccl_tools.show import drawing, overview
from tools.diagnosis.bundle.masking import Masker
from tools.history.listing import Run
from tools.pages import example_states
from tools.progress import lines
from tools.progress.counting import Counting
from tools.progress.series import Series
from tools.run_page import document, hosts, named, reading, sections, surroundings
from tools.run_page.markup import Writer, table
from tools.run_page.reading import Attempt, Rank, RunData

EVIL = '<b>"&'


def data_of(ranks, members=None, logs=None, state="ended", launch=None, **attempt):
    none = {"ended": None, "exit": 1, "first_failure": None, "also_failed": (), "stopped_by": None, "lost_host": None}
    one = Attempt(**{"logs": ".", **none, "members": members or {}, **attempt})
    known = dict.fromkeys(("script", "target", "program", "started", "seconds", "restarts", "cause"))
    run = Run(**known, folder=".", ranks=len(ranks), hosts=1, state=state, exit=1, progress={})
    return RunData(
        **{"folder": ".", "name": "run", "launch": launch or {}, "run": run, "attempts": [one], "ranks": ranks},
        **{"logs": logs or {}, "curves": {}, "metrics": [], "patterns": [], "notes": []},
    )


def ranks_of(number, each=8):
    return [Rank(rank=rank, device=rank % each, host=f"n{rank // each}", log="x") for rank in range(number)]


def html_of(data, names=None):
    return hosts.html_of(data, names or {}, Writer(Masker({})))


def cells_of(text):
    """The states of the cells of the grid."""
    return re.findall(r'<i class="cell (\w+)" title', text)


# ---- the grid --------------------------------------------------------------------------------------------------------


def test_each_rank_is_a_cell_with_its_state():
    status = {0: 0, 1: 3, 2: 143, 3: 1, 4: None, 5: 137}
    members = {str(rank): {"status": code} for rank, code in status.items()}
    text = html_of(data_of(ranks_of(6), members, first_failure="1", also_failed=("2",)))
    assert cells_of(text) == ["good", "first", "failed", "failed", "unknown", "stopped"]
    assert 'title="rank 1, device 1, failed first, exit code 3"' in text
    assert "n0: ranks 0-5; failed first: 1, failed: 2, its end is not known: 1, was stopped: 1" in text
    assert "failed first: 1</span>" in text  # the legend
    assert "<b>n0</b> rank 1: failed first; ranks 2,3: failed" in text


def test_after_a_hang_a_rank_did_not_fail_because_sigabrt_ended_it():
    members = {str(rank): {"status": 134} for rank in range(3)}
    names = {1: named.Named(rank=1, colour=0, why=(named.HUNG,))}
    assert cells_of(html_of(data_of(ranks_of(3), members, stopped_by="hang"), names)) == ["stopped", "apart", "stopped"]


def test_a_rank_without_numbers_is_silent_only_where_most_have_some():
    def log(columns):
        known = {"places": [], "metrics": {}, "counted": Counting().said(), "size": 1, "read": 1}
        return Series(**known, columns=columns, first=None, first_step=None, last=None)

    members = {str(rank): {"status": 0} for rank in range(3)}
    logs = {rank: [log({"loss": []} if rank else {})] for rank in range(3)}
    assert cells_of(html_of(data_of(ranks_of(3), members, logs))) == ["silent", "good", "good"]
    logs = {rank: [log({} if rank else {"loss": []})] for rank in range(3)}  # only rank 0 prints
    assert cells_of(html_of(data_of(ranks_of(3), members, logs))) == ["good"] * 3


def test_every_state_has_a_word_and_a_style():
    with open(f"{document.__file__.rpartition('/')[0]}/style/hosts.css", encoding="utf-8") as file:
        style = file.read()
    for how in hosts.ORDER:
        assert hosts.words_of_state()[how]
        assert f".cell.{how}" in style or how == hosts.STOPPED  # which has the colour of a cell
    assert set(hosts.MARKS) >= set(hosts.PROBLEMS)  # a colour alone says too little


@pytest.mark.slow
def test_of_very_many_ranks_a_cell_is_a_host():
    members = {str(rank): {"status": 143} for rank in range(65_536)}
    members["4097"] = {"status": 1}
    text = html_of(data_of(ranks_of(65_536), members, first_failure="4097"))
    cells = cells_of(text)
    assert len(cells) == 8192 and cells[4097 // 8] == "first" and cells.count("stopped") == 8191
    assert "<b>n512</b> rank 4097: failed first" in text and len(text) < 1_500_000


def test_hosts_with_a_problem_are_bounded():
    members = {str(rank): {"status": 1} for rank in range(800)}
    text = html_of(data_of(ranks_of(800), members))
    assert text.count("<li>") == 13 and "88 more hosts with a problem" in text


def test_names_of_hosts_are_text():
    text = html_of(data_of([Rank(rank=0, device=None, host=EVIL, log="x")]))
    assert EVIL not in text and text.count("&lt;b&gt;&quot;&amp;") == 2


# ---- the rank table --------------------------------------------------------------------------------------------------


@pytest.fixture
def failed(tmp_path):
    (folder,) = example_states.make("failed", str(tmp_path))
    return reading.read(folder, lines.load({}))


def test_the_rank_table_is_drawn_in_the_colours_of_the_page(failed):
    text = html_of(failed)
    drawn = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawn) == 2 and "fill=" not in text and "<style" not in text
    for one in drawn:
        size = ElementTree.fromstring(one).attrib
        assert int(size["width"]) <= 330 and size["role"] == "img"  # it fits a phone
    assert "10.0.0.1: ranks 0-3" in text


def test_a_large_rank_table_is_only_named(failed):
    servers = [{"server_id": f"h{n}", "device": [{"device_id": "0", "rank_id": str(n)}]} for n in range(65)]
    assert len(drawing.parts(overview.of({"server_list": servers}))) == 65
    with open(f"{failed.folder}/table.json", "w", encoding="utf-8") as file:
        file.write(str({"version": "1.0", "server_list": servers}).replace("'", '"'))
    text = html_of(failed)
    assert "<svg" not in text and "table.json" in text


def test_the_text_of_a_rank_table_is_text():
    servers = [{"server_id": EVIL, "device": [{"device_id": EVIL, "rank_id": EVIL}]}]
    (text,) = drawing.parts(overview.of({"server_list": servers}))
    assert "<b>" not in text and ElementTree.fromstring(text) is not None


# ---- the environment -------------------------------------------------------------------------------------------------


@pytest.fixture
def around(tmp_path):
    """around(RANKS, f): the Surroundings of ranks of which each has the variables f(rank, host)."""

    def make(number, variables, each=4):
        for rank in range(number):
            lines_of = [f'declare -x {name}="{value}"' for name, value in variables(rank, rank // each).items()]
            (tmp_path / f"rank_{rank}.env").write_text("\n".join(lines_of) + "\n")
        data = data_of(ranks_of(number, each)).replace(folder=str(tmp_path))
        return surroundings.of(data)

    return make


def test_variables_that_follow_a_rule_are_only_named(around):
    found = around(16, lambda rank, host: {"DEVICE_ID": rank % 4, "LOCAL": rank % 8, "IP": f"10.0.0.{host}", "A": "b"})
    assert (found.own, found.of_hosts, found.different) == (["DEVICE_ID", "LOCAL"], ["IP"], [])
    text = sections.environment(found, Writer(Masker({})))
    assert "Each rank has its own: DEVICE_ID, LOCAL" in text and "Each host has its own: IP" in text


def test_a_rank_that_breaks_the_rule_is_shown(around):
    found = around(16, lambda rank, host: {"DEVICE_ID": rank % 4 if rank != 7 else 0})
    (one,) = found.different
    assert one.name == "DEVICE_ID" and ("0", [0, 4, 7, 8, 12]) in one.values and found.own == []


def test_two_hosts_that_differ_are_shown(around):
    """One of them may be set up wrongly."""
    found = around(8, lambda rank, host: {"ASCEND_HOME_PATH": f"/{host}"})
    assert [one.name for one in found.different] == ["ASCEND_HOME_PATH"] and found.of_hosts == []


def test_a_long_list_of_ranks_is_cut_between_two():
    assert named.ranks(range(0, 20, 2)) == "ranks 0,2,4,6,8,10,12,14,16,18"
    assert named.ranks(range(0, 512, 2)) == "ranks 0,2,4,6,8,10,12,14,16,18,20,22,24,26,28, … (256 ranks)"
    assert named.ranks(range(1024)) == "ranks 0-1023"


def test_a_table_of_cards_has_its_heads_in_the_cells():
    text = table(["a", EVIL], [["1", "2"]], cards=True)
    assert '<table class="cards">' in text and '<td data-label="a">1</td>' in text
    assert '<td data-label="&lt;b&gt;&quot;&amp;">2</td>' in text
    assert "data-label" not in table(["a"], [["1"]])
