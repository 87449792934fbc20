"""The page of a check: the answer first, hosts by their state, what differs in columns, and nothing that is markup."""

import json
import os
import re
import stat

import example_checks
import pytest
from healthy_hosts import HEALTHY, answers, facts_of, names

from hccl_tools.common.refusal import Refusal
from hccl_tools.hosts import ask
from hccl_tools.hosts.ask import Answer
from hccl_tools.machine import addresses
from tools.diagnosis.bundle.masking import Masker
from tools.preflight import compare, main, page, page_trial
from tools.preflight.trial.search import Fault, Outcome
from tools.preflight.words import Found
from tools.run_page import saving
from tools.run_page.markup import Writer


def html_of(found):
    return page.html_of(found, example_checks.MADE)


def texts(html, tag):
    """The words in each element of this name."""
    return [
        re.sub(r"<[^>]*>", "", each).strip()
        for each in re.findall(rf"<{tag}(?:\s[^>]*)?>(.*?)</{tag}>", html, re.DOTALL)
    ]


def section(html, name):
    return html.partition(f'<section id="{name}">')[2].partition("</section>")[0]


def test_hosts_that_are_alike_are_one_sentence_and_a_grid():
    html = html_of(example_checks.good())
    assert texts(html, "h1") == ["64 hosts agree; nothing blocks"]
    assert '<header id="outcome" class="good">' in html and html.count('<i class="cell good"') == 65
    assert texts(html, "h2") == ["The hosts", "Facts of a host"] and "node0, as most hosts" in html


def test_the_answer_is_the_worst_finding_and_what_to_do_follows():
    html = html_of(example_checks.differing())
    assert texts(html, "h1") == ["node63: no answer; ssh: connect to host node63 port 22: No route to host"]
    assert '<header id="outcome" class="failed">' in html
    head = html.partition("</header>")[0]
    assert "64 hosts, 9 findings: 4 blocking" in head and "Install the same version on all hosts" in head
    order = ["This stops the job", "This slows it", "This may surprise", "The hosts", "What differs", "Facts of a host"]
    assert [title for title in texts(html, "h2") if title in order] == order


def test_a_difference_that_does_not_block_has_another_colour_than_one_that_does():
    said = answers(3, {1: {"kernel": "6.6"}})
    html = html_of(Found(hosts=names(3), differences=compare.compare(said), facts=facts_of(said)))
    assert '<header id="outcome" class="runs">' in html and texts(html, "h1") == [
        "node1: kernel 6.6; the other 2 hosts: 5.10.0-60"
    ]


def test_a_host_has_the_state_of_its_worst_finding():
    found = page.states(example_checks.differing())
    assert [found[f"node{n}"] for n in (3, 5, 20, 21, 63, 0)] == [
        "failed",
        "slow",
        "differs",
        "failed",
        "silent",
        "good",
    ]
    assert sum(state == "good" for state in found.values()) == 56


def test_hosts_that_are_alike_in_all_that_differs_are_one_column():
    part = section(html_of(example_checks.differing()), "unlike")
    assert texts(part, "th") == ["means", "node[3,7-9]", "node21", "node5", "node20", "the other 56 hosts"]
    first = texts(part, "tr")[1]
    assert first.split("RC1") == ["stops the jobCANN 8.1.", *["CANN 8.2."] * 4, ""]


def test_more_columns_than_fit_are_counted():
    said = answers(30, {n: {"kernel": f"6.{n}"} for n in range(12)})
    part = section(html_of(Found(hosts=names(30), differences=compare.compare(said), facts=facts_of(said))), "unlike")
    assert len(texts(part, "th")) == 7 and "7 hosts differ in other ways" in part


def test_the_facts_of_a_host_are_those_of_its_answer_and_a_secret_is_a_digest():
    facts = section(html_of(example_checks.differing()), "facts")
    assert texts(facts, "summary") == ["node3", "node21", "node5", "node20", "node0, as most hosts"]
    of_5 = facts.split("<details>")[3]
    assert "<li>MTU 1400</li>" in of_5 and "<li>CANN 8.2.RC1</li>" in of_5
    assert "hunter2" not in html_of(example_checks.differing()) and "cannot be written" not in facts


def test_what_hosts_say_is_text():
    html = html_of(example_checks.differing())
    assert "6.6.0-<b>" not in html and "6.6.0-&lt;b&gt;&amp;&quot;&#x27;" in html


def test_of_many_hosts_a_cell_is_a_host_and_the_page_stays_small():
    said = answers(1024, {n: {"kernel": f"6.{n}"} for n in range(0, 1024, 2)})
    html = html_of(Found(hosts=names(1024), differences=compare.compare(said), facts=facts_of(said)))
    grid = section(html, "hosts").partition('<div class="cells"')[2]
    assert grid.count('<i class="cell differs"') == 1024 and len(html) < 500_000  # no version has the majority


def test_too_many_findings_are_counted():
    said = answers(3, {1: {f"package:p{n}": str(n) for n in range(3)}})
    found = compare.compare(said) * 100
    part = section(html_of(Found(hosts=names(3), differences=found, facts=facts_of(said))), "blocks")
    assert part.count("<li>") <= 201


# ---- a trial -------------------------------------------------------------------------------------------------------


def rows_of(html):
    """The rows of the table of times that are not folded; of each the texts of its cells."""
    table = section(html, "trial").partition("<tbody>")[2].partition("</tbody>")[0]
    return [[re.sub(r"<[^>]*>", " ", cell).split() for cell in row.split("</td>")] for row in table.split("</tr>")]


def test_what_hosts_took_is_a_table_with_those_that_fail_and_are_slow_first():
    html = html_of(example_checks.tried())
    assert texts(section(html, "trial"), "p")[0] == "248 ranks on 31 hosts passed; 9 jobs in 132 s"
    heads = texts(section(html, "trial"), "th")[:8]
    assert heads[0] == "host" and heads[4:7] == [
        "AllReduce of 16 MiB",
        "AllReduce of 4 MiB with one other host",
        "matmul",
    ]
    failed, middle, slow, device, *others, _ = rows_of(html)
    assert failed[0] == ["✕", "node12", "fails"] and middle[0] == ["the", "median", "of", "all"]
    assert slow[0] == ["!", "node5", "slow"] and slow[5] == ["24.1", "ms", "9.3", "times", "the", "usual"]
    assert device[0] == ["!", "node7", "slow"] and device[6] == ["4.28", "ms", "2.4", "times", "the", "usual"]
    assert len(others) == 4 and all(len(cells[0]) == 1 for cells in others)
    assert "The other 25 hosts, none of them slow" in texts(section(html, "trial"), "summary")


def test_a_slow_neighbour_makes_no_host_look_slow():
    found = page_trial.times(example_checks.tried().trial)
    assert found["node5"]["pair"] > 0.02 and found["node4"]["pair"] < 0.003 and found["node6"]["pair"] < 0.003
    assert found["node7"]["matmul"] > 0.004 > found["node8"]["matmul"]


def test_how_a_host_was_found_and_how_to_do_without_it_is_said():
    part = section(html_of(example_checks.tried()), "trial")
    assert "<b>node12</b> found by halving; paired with node0, which passes without it, it fails again" in part
    assert "kubectl cordon node12 node5" in part and "mc-consumer-publicfault" in part
    result = example_checks.tried().trial
    found = result.found.replace(
        faults=[
            Fault(hosts=("a", "b"), outcome=Outcome(passed=False)),
            Fault(hosts=("c",), outcome=Outcome(passed=False)),
        ],
        unknown=["d", "e"],
    )
    part = page_trial.html_of(result.replace(found=found), page.shown(), Writer(Masker({})))
    assert "<b>a, b</b> found by halving: each of them passes, and together they fail" in part
    assert "<b>c</b> found by halving: it fails alone" in part and "<b>d, e</b> more may fail here" in part


def test_a_trial_without_a_job_that_passed_has_no_table_and_none_is_no_part_of_the_page():
    part = section(html_of(example_checks.all_fail()), "trial")
    assert texts(part, "p") == ["no job on all hosts passed; 7 jobs in 44 s"] and "<table" not in part
    assert 'id="trial"' not in html_of(example_checks.differing())


def test_what_a_trial_has_found_is_no_fact_that_differs_and_marks_its_hosts():
    found = example_checks.tried()
    assert 'id="unlike"' not in html_of(found)
    assert [page.states(found)[f"node{n}"] for n in (12, 5, 7, 0)] == ["failed", "slow", "slow", "good"]


@pytest.mark.slow
def test_what_ranks_of_a_trial_say_is_text_and_of_many_hosts_the_page_stays_small():
    assert "<b>HcclCommInitRootInfo" not in html_of(example_checks.tried())
    html = html_of(example_checks.tried(1024))
    assert (
        html.count('class="host-name"') == 257 and "767 hosts more; --json has all." in html and len(html) < 1_000_000
    )


# ---- as a file -----------------------------------------------------------------------------------------------------


@pytest.fixture
def check(monkeypatch, in_process, world):
    def answered(asker, words, question, seconds):
        return [
            Answer(host=name, content=json.loads(json.dumps({"facts": HEALTHY, "failed": {}})), lines=[])
            for name in asker.logins
        ], []

    monkeypatch.setattr(ask, "ask", answered)
    monkeypatch.setattr(addresses, "of", lambda hosts: dict.fromkeys(hosts))
    return lambda *words: in_process(main.main, *words)


def test_the_option_writes_it_for_its_owner_beside_what_is_printed(check, world):
    assert check("-H", "a,b", "--output", "page.html") == (0, "2 hosts agree; nothing blocks\n", "")
    assert stat.S_IMODE(os.stat(world / "page.html").st_mode) == 0o600
    assert check("-H", "a,b", "--output", "page.html")[0] == 0  # our own page is replaced


def test_another_file_is_not_replaced_and_nobody_is_asked(check, world, monkeypatch):
    (world / "mine.html").write_text("mine")
    monkeypatch.setattr(ask, "ask", None)
    status, out, err = check("-H", "a,b", "--output", "mine.html")
    assert (
        (status, out) == (2, "") and "another file of that name" in err and (world / "mine.html").read_text() == "mine"
    )


def test_a_page_that_cannot_be_written_is_refused_after_the_result(check):
    status, out, err = check("-H", "a,b", "--output", "no/such/folder/page.html")
    assert status == 2 and out == "2 hosts agree; nothing blocks\n" and "cannot be written" in err


def test_a_page_of_another_program_is_not_ours(world):
    (world / "page.html").write_text(html_of(example_checks.good(2)))
    saving.check("page.html", page.PROGRAM)
    with pytest.raises(Refusal):
        saving.check("page.html", "tools/report.py")
