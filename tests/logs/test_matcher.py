"""The search in logs without hyperscan finds what a search for each rule in each line finds."""

import functools
import random
import re
import time

import pytest
from known import ENTRIES
from suite.cases import for_each

from tools.logs import direct, line_heads, literals, matcher, owners, scan, shapes
from tools.logs.wanted import LONGEST, MOST, Expression

needs_hyperscan = pytest.mark.skipif(not matcher.installed(), reason="needs hyperscan")


def wanted_of(kind):
    return scan.Machine(ENTRIES, kind, False)._wanted


@functools.cache
def fast_of(kind):
    """Hyperscan's search for a kind of logs: its automaton takes seconds."""
    return matcher.Fast(wanted_of(kind))


def naive(wanted, block):
    """{(where the line begins, number)}: each rule is tried on each line."""
    found, place = set(), 0
    for line in block.split(b"\n"):
        text = line[:LONGEST].decode("utf-8", "replace")
        for number, want in enumerate(wanted):
            if want in line if isinstance(want, bytes) else want.pattern.search(text):
                found.add((place, number))
        place += len(line) + 1
    return found


def by_line(hits, block):
    return {(block.rfind(b"\n", 0, place) + 1, number) for place, number in hits}


# --- what must be in a line -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("No space left", ("No space left",)),
        (r"EL000[12]\b", ("EL0001", "EL0002")),
        (r"a(b|c)?foo+ba*r(?:x1|y2)long", ("rx1long", "ry2long")),
        (r"(?:kex|ssh)_exchange: ", ("kex_exchange: ", "ssh_exchange: ")),
        (r"^Connection to \S+ closed by", ("Connection to ",)),
        (r"(?<!errno=)Permission denied", ("Permission denied",)),
        (r"(?i:Hccl Error)", ("hccl error",)),
        (r"(?i)OUT of memory", ("out of memory",)),
        (r"(?:disk|quota .*exceeded)$", ("disk", "quota ")),
        (r"E\d{5}:", ()),
        (r"(?:disk full|.*)", ()),
        (r"(?:disk full)*", ()),
        (r"[abcdefgh]{9}", ()),
        (r"(?:out){2}", ()),
        ("first\nsecond line", ("second line",)),
        ("连接被对[方端]重设", ("连接被对方重设", "连接被对端重设")),
        ("\u00c9chec du rang", ("chec du rang",)),
    ],
)
def test_the_texts_of_an_expression(source, texts):
    assert literals.texts_of(source) == texts


def test_every_sample_has_a_text_of_its_rule():
    for entry in ENTRIES:
        for expression in entry.expressions:
            taken = [sample for sample in entry.samples if expression.pattern.search(sample)]
            assert all(expression.may_take(sample, sample.lower()) for sample in taken), expression.source


def test_almost_every_rule_has_a_text():
    sources = [source for entry in ENTRIES for source, texts in zip(entry.sources, entry.texts) if not texts]
    assert len(sources) < 10, "each of them is tried on all bytes of all logs"


def test_one_of_many_texts():
    texts = {b"E30003", b"E3000", b"EI0001", b"EI0002", b"507(1", b"."}
    form = re.compile(direct.one_of(texts))
    assert all(form.match(text)[0] == text for text in texts)
    assert form.match(b"E30001")[0] == b"E3000" and not form.match(b"x") and not form.match(b"EI0003")


@pytest.mark.parametrize(
    ("source", "count"), [("[EWI][0-9]{4}:", 3), ("[EW]*x", 1), ("[EW]x|[IE]y", 1), ("[A-Z]x", 1), ("[^ab]x", 1)]
)
def test_an_expression_of_few_first_letters(source, count):
    each = direct.variants(source)
    assert len(each) == count
    for line in ("E1234:", "I9999: and", "x W0000:", "Ey", "x", "bx", "cx", "Wx"):
        assert bool(re.search(source, line)) == any(re.search(one, line) for one in each)


# --- lines ------------------------------------------------------------------------------------------------------------


def line_of(chance, wanted, samples):
    """A line of a job, or of hostile hands."""
    kind = chance.randrange(10)
    if kind < 3:
        return chance.choice(samples).encode()
    if kind == 3:  # with a few bytes changed
        line = bytearray(chance.choice(samples).encode())
        for _ in range(chance.randrange(4)):
            line[chance.randrange(len(line))] = chance.choice(b"09afAFeE.-=# |:x\x1b\xe5\t\r")
        return bytes(line)
    if kind == 4:
        want = chance.choice(wanted)
        texts = [want] if isinstance(want, bytes) else [text.encode() for text in want.texts] or [b"E50012:"]
        return b"x" * chance.randrange(3) + chance.choice(texts) + b"07ab" * chance.randrange(3)
    if kind == 5:
        return "训练第 1 步，损失 0.7，连接被对端重置，地址已被使用".encode()[chance.randrange(3) :]
    if kind == 6:
        return b" ".join(chance.choice(samples).encode()[:40] for _ in range(4))
    if kind == 7:
        return b"y" * chance.choice((0, 1, 3990, 5000)) + chance.choice(samples).encode()
    return b"epoch: %d step: %d, loss is %f" % (chance.randrange(9), chance.randrange(99), chance.random())


@pytest.mark.slow
@for_each("kind", owners.KINDS)
@for_each("number", range(8))
def test_all_lines_are_found(number, kind, monkeypatch):
    """With pieces, memories and many lines alike that are small enough to be met here."""
    chance = random.Random(number)
    monkeypatch.setattr(shapes, "_PIECE", chance.choice((200, 4000, 512 << 10)))
    monkeypatch.setattr(shapes, "_POPULAR", chance.choice((0, 3, 400)))
    monkeypatch.setattr(shapes, "_MOST_SHAPES", chance.choice((3, 50, 100_000)))
    monkeypatch.setattr(shapes, "_MOST_WORDS", chance.choice((5, 200_000)))
    wanted = wanted_of(kind)
    samples = [sample for entry in ENTRIES for sample in entry.samples]
    search = shapes.Shapes(wanted)
    for _ in range(3):
        block = b"\n".join(line_of(chance, wanted, samples) for _ in range(60)) + b"\n" * chance.randrange(2)
        search.restart()
        expected, found = naive(wanted, block), by_line(search.find(block), block)
        assert expected - found == set()
        more = {number for _, number in found - expected}
        assert all(not isinstance(wanted[one], bytes) and not wanted[one].texts for one in more)


def test_a_text_within_a_word_and_at_the_ends_of_a_line():
    wanted = [b"time out", b"lost heartbeat", b"|  |", b"E30003", b"E3000", b"EE3", b"E30"]
    search = shapes.Shapes(wanted)
    block = b"xtime outs\nlost heartbeat\n|  |\nE30003E3000\ntime  out\nhas lost heartbeats\nEE30003"
    assert by_line(search.find(block), block) == naive(wanted, block)


def test_a_line_of_megabytes_is_searched_to_its_end():
    search = shapes.Shapes([b"lost heartbeat", b"E30003"])
    block = b"x" * 3_000_000 + b"lost heartbeat, E30003\nstep 1\n"
    assert by_line(search.find(block), block) == {(0, 0), (0, 1)}


class Counted:
    """An expression that counts how often a line is searched for it."""

    def __init__(self):
        self.times = 0

    def search(self, text):
        self.times += 1


def test_an_expression_is_tried_once_in_a_line_however_often_its_text_is_there():
    want = Expression(r"\b999999\b", ("999999",))
    want.pattern = Counted()
    search = shapes.Shapes([want])
    assert search.find(b"9" * 1000 + b"\n" + b"9" * 1000) == []
    assert want.pattern.times == 2


def test_no_more_of_one_text_than_are_wanted_and_all_are_counted():
    wanted = [b"[ERROR]", Expression(r"connect \w+ failed", ("connect ",)), b"E30003"]
    search = shapes.Shapes(wanted)
    block = b"".join(b"[ERROR] %d connect %d failed E30003\n" % (n, n) for n in range(1000))
    hits = search.find(block) + search.find(block)
    assert [sum(number == one for _, number in hits) for one in range(3)] == [MOST] * 3
    assert search.found[0] == search.found[2] == 2000
    search.restart()
    assert len(search.find(block)) == 3 * MOST


# --- time -------------------------------------------------------------------------------------------------------------

HARD_WORK = {
    "a line of codes": b"E30003E3000 EI0006 " * 100_000,
    "all lines have a text": b"".join(b"Loss %d of Connection refused, connect timeout\n" % n for n in range(40_000)),
    "nothing comes twice": b"\n".join(random.Random(3).randbytes(60).hex().encode("utf-7") for _ in range(16_000)),
    "empty lines": b"\n" * 2_000_000,
    "one long word": b"q" * 2_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HARD_WORK)
def test_hostile_logs_take_bounded_time(name):
    """2 MB each; a second each on a slow machine is what the search took that tried all texts."""
    search = shapes.Shapes(wanted_of(owners.TRAIN))
    begun = time.process_time()
    search.find(HARD_WORK[name])
    assert time.process_time() - begun < 3


@pytest.mark.slow
def test_typical_logs_are_read_in_a_moment():
    """A log of training has few shapes, though no line comes twice: far less time than for all texts in all lines."""
    chance = random.Random(5)
    lines = "".join(
        f"2026-01-01 10:00:00,{n % 1000:03} - INFO - epoch: {n // 100} step: {n}, loss is {chance.random()}, "
        f"buffer 0x{chance.randrange(1 << 40):x}\n"
        for n in range(40_000)
    ).encode()
    search = shapes.Shapes(wanted_of(owners.TRAIN))
    begun = time.process_time()
    search.find(lines)
    took = time.process_time() - begun
    begun = time.process_time()
    naive([want for want in wanted_of(owners.TRAIN)[:40]], lines[: len(lines) // 40])
    assert took < (time.process_time() - begun) * 40


# What users may write: what a search in many lines at once, or in bytes, takes for something else
ODD = [
    *(r"(?<!^)abcd", r"(?<=^)abcd", r"\Aabcd\d", r"abcd\d+\Z", r"(?<!\s)abcd", r"abcd(?!\s)", r"abcd(?!\s*efgh)"),
    *(
        r"\u8fde\u63a5.*",
        r"\u8fde+",
        r"连?接?[a-z]",
        r"^...$",
        r"\w{5,}$",
        r"a.{2}b",
        r"abcd .{2} efgh",
        r"abcd \w+ efgh",
    ),
    *(r"\A\d\d\b", r"\d\d\Z", r"(?<!\n)\d{3}$", r"(?i)socket", r"(?i)连Ébcdef", r"(?x) abcd  # ^c", r"abcd\n*$"),
    *(r"(a)?(?(1)bcde|fghi)", r"(?P<x>abcd)(?P=x)", r"[^\W\d]{2}\d", "", r"\b", r"(?s)abcd.*efgh", r"(?u)abcd\d"),
    *(r"abcd|^$", r"^(?!.*abc).*", r"\N{LATIN SMALL LETTER E WITH ACUTE}\d", r"(?s:.)abcd", r"abcd\s*$", r"\x61bcd\d"),
]
MANY = (
    "abcd,xabcd,  abcd9, abcd,abcd ,abcdefgh,efgh,abcd,efghi,abcd 连接 efgh,abcd xy efgh,连接,接a,连,SOCKET,socket,"
    "连Ébcdef,连ébcdef,12,x12,12x,abcd12,123,éa1,é1,连接重设啊,a连接b,a连b,bcde,fghi,abcdabcd,,abcd,,efgh,连123,abcd9"
)


@functools.cache
def odd(source):
    """What is wanted, and hyperscan's search for it where there is one: its automaton is made once."""
    wanted = [b"no line", Expression(line_heads.anchored(source), literals.texts_of(source))]
    return wanted, matcher.matcher_of(wanted, matcher.installed())


@pytest.mark.slow
@for_each("source", ODD)
@for_each("text", [MANY, "".join(char for char in MANY if char.isascii())])
@for_each("popular", [0, 400])
@pytest.mark.parametrize("fast", [False, pytest.param(True, marks=needs_hyperscan)])
def test_odd_expressions(source, text, popular, fast, monkeypatch):
    monkeypatch.setattr(shapes, "_POPULAR", popular)
    wanted, search = odd(source)
    block = text.replace(",", "\n").encode() * 3
    search = search if fast else matcher.matcher_of(wanted, fast)
    search.restart()
    expected, found = naive(wanted, block), by_line(search.find(block), block)
    assert {begin for begin, _ in expected if re.search(source, line_at(block, begin))} <= {begin for begin, _ in found}
    assert found >= expected
    assert len(expected) <= search.found[1] <= MOST


def line_at(block, place):
    return block[place : (block + b"\n").index(b"\n", place)].decode()


@pytest.mark.slow
@needs_hyperscan
@for_each("number, kind", enumerate(owners.KINDS))
def test_hyperscan_finds_the_same(number, kind):
    chance = random.Random(number)
    wanted = wanted_of(kind)
    samples = [sample for entry in ENTRIES for sample in entry.samples]
    searches = [fast_of(kind), shapes.Shapes(wanted)]
    for _ in range(3):
        block = b"\n".join(line_of(chance, wanted, samples) for _ in range(60))
        for search in searches:
            search.restart()
        fast, slow = [by_line(search.find(block), block) for search in searches]
        assert fast == naive(wanted, block)
        assert fast <= slow


@pytest.mark.slow
@needs_hyperscan
def test_the_automaton_has_the_texts_of_an_expression_that_is_large(monkeypatch):
    """With all that may be before a line it has 500 characters; five of these took 7 of 8 seconds."""
    made = []
    monkeypatch.setattr(matcher, "_database", lambda texts, whole: made.extend(want for _, want in whole))
    matcher.Fast(wanted_of(owners.TRAIN))
    assert len(made) > 500 and max(len(want.source) for want in made) < 400
    without = Expression(line_heads.anchored(r"^\d+"), ())
    matcher.Fast([without])
    assert made[-1] is without and len(without.source) > 400  # nothing else finds it


@needs_hyperscan
def test_a_line_that_is_found_at_each_of_its_bytes_counts_once():
    """Those after it are found, too: of each no more than MOST are wanted."""
    wanted = [Expression("connect .*", ("connect ",)), Expression("late(?! again)", ("late",)), b"[ERROR]"]
    block = b"connect " + b"x" * 3000 + b"\n" + b"late again\n" * 300 + b"late\nconnect y\n" + b"[ERROR]\n" * 300
    search = matcher.Fast(wanted)
    hits = by_line(search.find(block), block)
    assert hits >= {(0, 0), (block.index(b"late\n"), 1), (block.index(b"connect y"), 0)}
    assert (search.found, len(hits)) == ([2, 1, 300], 3 + MOST)


@needs_hyperscan
def test_hyperscan_finds_the_same_in_text_that_is_not_ascii():
    wanted = wanted_of(owners.TRAIN)
    block = "".join(f"{sample}\n" for entry in ENTRIES for sample in entry.samples if not sample.isascii()).encode()
    search = fast_of(owners.TRAIN)
    search.restart()
    assert naive(wanted, block) - by_line(search.find(block), block) == set()
