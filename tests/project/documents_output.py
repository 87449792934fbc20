"""Compares what a block of a document shows with what was printed, and brings the block up to date."""

import re
from collections import Counter

_PLAIN = [  # what differs from run to run, and what stands for it; in this order
    (r"\x1b\[[0-9;]*[A-Za-z]", ""),
    (r"-\d{8}T\d{6}Z-\d+", "-TIME-PID"),
    (r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d([.,]\d+)?Z?)?", "DATE"),
    (r"\b\d{1,2}:\d\d:\d\d([.,]\d+)?", "TIME"),
    (r"\b\d+(\.\d+)? ?(ms|s|min|seconds|minutes)\b", "N s"),
    (r"(?i)\b(pid|process|processes)([ =:]+)\d+", r"\1\2PID"),
    (r"\b(process PID of )[\w.-]+", r"\1USER"),
    (r"(?i)(port)([ =:\"]+)\d{4,5}\b", r"\1\2PORT"),
    (r"(\d+\.\d+\.\d+\.\d+|node\d+|localhost):\d{4,5}\b", r"\1:PORT"),
    (r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,64}\b", "DIGEST"),
    (r"(?i)\b(sha-?256|digest)([ =:]+)[0-9a-f]{6,}\b", r"\1\2DIGEST"),
    (r"\b(loss(?: is|:)) [-+0-9.e]+", r"\1 N"),
    (r"(?i)\b(accuracy[^:\n]*|hmean[^:\n]*): \d+(\.\d+)?%", r"\1: N%"),
    (r"/tmp/[\w./-]+", "/tmp/NAME"),
    (r"(\bin \S+ \(\S+\.py:)\d+\)", r"\1LINE)"),  # of a stack: the stub trainer's lines move
    (r"[ \t]+", " "),
]


def plain(text):
    """Lines of `text` with times, process ids, dates, ports, digests and folders as fixed words, and single blanks."""
    for pattern, word in _PLAIN:
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.splitlines()]


def difference(block, output):
    """None if `output` is what the block shows, else where they differ, as text."""
    expected, printed = plain(block.text), plain(output)
    if block.verb == "prints loosely":
        gaps = ["...", *(line for shown in expected for line in (shown, "..."))]
        missing = _first_missing([line for line in gaps if line.strip()], printed)
    else:
        missing = _first_missing(expected, printed)
    if missing is None:
        return None
    return f"{block.place}: {missing}\n--- what is printed, normalised:\n" + "\n".join(printed)


def _first_missing(expected, printed):
    """The first expected line that is not there, as text; "..." stands for any lines."""
    chunks = [[]]
    for line in expected:
        if line.strip() == "...":
            chunks.append([])
        else:
            chunks[-1].append(line)
    place = 0
    for number, chunk in enumerate(chunks):
        last = number == len(chunks) - 1
        starts = [place] if number == 0 else range(place, len(printed) - len(chunk) + 1)
        if last and number and chunk:
            starts = [len(printed) - len(chunk)] if len(printed) - len(chunk) >= place else []
        found = next((start for start in starts if printed[start : start + len(chunk)] == chunk), None)
        if found is None:
            return _words(chunk, printed, place, number == 0)
        place = found + len(chunk)
    if place < len(printed) and chunks[-1]:
        return f"more is printed than is shown, from: {printed[place]}"
    return None


def _words(chunk, printed, place, at_once):
    """What of `chunk` is not printed."""
    if at_once:
        for line, got in zip(chunk, [*printed[place:], *[None] * len(chunk)]):
            if line != got:
                return f"shown: {line}\nprinted: {'nothing more' if got is None else got}"
    for line in chunk:
        if line not in printed[place:]:
            return f"shown, and not printed from here on: {line}"
    return "these lines are not printed like this, one below the other:\n" + "\n".join(chunk)


# ---- bringing a block up to date -------------------------------------------------------------------

_GAP = "..."
_ALONE = 0.8  # the price of a line that only one side has; a pair costs less if the lines have some words in common
_TOO_UNLIKE = 0.65  # beside "...", such a pair may be two different lines
_TIME = re.compile(r"\b\d{8}T\d{6}Z-\d+")


def updated(block, output, times):
    """The block's text with the printed lines in place of those that differ; None if their place cannot be told.

    times: {time and process id of a printed run folder: those that the page shows}, for the whole page.
    """
    shown, printed = block.text.splitlines(), re.sub(_PLAIN[0][0], "", output).splitlines()
    if block.verb == "prints loosely":
        shown = [_GAP, *(line for pair in shown for line in (pair, _GAP))]
    pairs = _aligned(plain("\n".join(shown)), plain("\n".join(printed)))
    if pairs is None:
        return None
    pairs = [(i if i is None else shown[i], j if j is None else printed[j]) for i, j in pairs]
    for old, new in pairs:
        if None not in (old, new) and plain(old) == plain(new):
            times.update(zip(_TIME.findall(new), _TIME.findall(old)))
    lines = []
    for old, new in pairs:
        if old == _GAP and block.verb == "prints loosely":
            continue
        if old is not None and (old == _GAP or not old or (new is not None and plain(old) == plain(new))):
            lines.append(old)
        elif new is not None:
            new = _TIME.sub(lambda time: times.get(time[0], time[0]), new.rstrip())
            lines.append(_with_seconds_of(old, new))
    text = "".join(f"{line}\n" for line in lines)
    new_block = type(block)(**{**vars(block), "text": text})
    return text if difference(new_block, output) is None else None


def _with_seconds_of(old, new):
    """The new line with the seconds of the old one, so that a changed word shows as one changed word."""
    seconds = re.findall(r"\b\d+\.\d s\b", old or "")
    pieces = re.split(r"\b\d+\.\d s\b", new)
    if len(pieces) != len(seconds) + 1:
        return new
    return "".join(piece + second for piece, second in zip(pieces, [*seconds, ""]))


def _aligned(shown, printed):
    """[(number of a shown line, number of the printed line in its place), ...], None for a missing one, or None."""
    prices = _prices(shown, printed)
    pairs, i, j = [], 0, 0
    while i < len(shown) or j < len(printed):
        step = prices[i][j][1]
        if step == "swallow":
            j += 1
            continue
        pairs.append((None if step == "insert" else i, None if step in ("drop", "leave") else j))
        if step == "drop" and shown[i].strip() and _beside_a_gap(shown, i):
            return None
        if step == "pair" and _unlike(shown[i], printed[j]) > _TOO_UNLIKE and _beside_a_gap(shown, i):
            return None
        i, j = i + (step != "insert"), j + (step in ("pair", "insert"))
    return pairs


def _beside_a_gap(shown, i):
    return _GAP in shown[max(i - 1, 0) : i + 2]


def _prices(shown, printed):
    """prices[i][j]: (price, first step) of the cheapest way to lay shown[i:] on printed[j:]."""
    prices = [[(0.0, "")] * (len(printed) + 1) for _ in range(len(shown) + 1)]
    for i in range(len(shown), -1, -1):
        for j in range(len(printed), -1, -1):
            ways = []
            is_gap = i < len(shown) and shown[i] == _GAP
            if i < len(shown):
                ways.append(
                    (prices[i + 1][j][0] + (0 if is_gap or not shown[i] else _ALONE), is_gap and "leave" or "drop")
                )
            if j < len(printed):
                ways.append((prices[i][j + 1][0] + (0 if is_gap else _ALONE), "swallow" if is_gap else "insert"))
            if i < len(shown) and j < len(printed) and not is_gap:
                ways.append((prices[i + 1][j + 1][0] + _unlike(shown[i], printed[j]), "pair"))
            prices[i][j] = min(ways, default=(0.0, ""))
    return prices


def _unlike(one, other):
    """0 for lines that are the same, 1 and more for lines without a common word."""
    if one == other:
        return 0
    ours, theirs = Counter(one.split()), Counter(other.split())
    common = sum((ours & theirs).values())
    sizes = sum(ours.values()), sum(theirs.values())
    return 1.1 - common / max(sum(sizes), 1) - common / max(min(sizes), 1) / 2
