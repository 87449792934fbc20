"""Reads untrusted YAML of limited size and depth; a refusal names the line.

PyYAML calls itself for every level, and its C part ends the process with SIGSEGV if there are too many.  An alias is
one character in the file, and repeats everything behind it where the values are used.  So the text is measured as a
sequence of events, with all aliases expanded, before anything is built from it.
"""

from __future__ import annotations

import re

import yaml

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line, short, shown
from tools.config.unusable import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times faster, if it is there

MOST_LEVELS = 50  # a config has five
_MOST_SIZE = 1 << 21  # in characters; a value costs _VALUE of them besides its own text
_VALUE = 16
_MOST_DIGITS = 100


class NotYaml(Unusable):
    """The text cannot be read: `reason`, and `line` where it is known, from 1.

    wants_quotes: whether the reason ends with the advice to put a text in quotes.
    """

    def __init__(self, reason: str, mark: Any = None, wants_quotes: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wants_quotes = wants_quotes
        self.line = mark.line + 1 if mark else None


def read(text: str) -> tuple[Any, yaml.Node | None]:
    """(the value of the YAML in `text`, its node); the node is None where the text is empty.  Raises NotYaml."""
    try:
        text.encode()  # PyYAML's half in C does it, too; the one in Python would blame a character
        _measure(text)
        loader = _Loader(text)
        node = loader.get_single_node()
        _refuse_duplicates(node)
        return (None if node is None else loader.construct_document(node)), node
    except yaml.reader.ReaderError as error:
        before = text.partition(chr(error.character))[0]
        place = yaml.Mark("", len(before), before.count("\n"), 0, None, 0)
        raise NotYaml(
            tr("not YAML: it has the character U+{character:04X}, which does not print", character=error.character),
            place,
        ) from error
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), one_line(getattr(error, "problem", None) or error)
        if "maximum nesting depth" in problem:  # the half in C of PyYAML 6.0.4, which reads 1,000 levels ahead
            raise NotYaml(_too_deep(), mark) from error
        raise NotYaml(_not_yaml(text, problem, mark), mark) from error
    except UnicodeError as error:  # in an argument; a file was decoded before
        raise NotYaml(tr("not YAML: a byte of it is not UTF-8")) from error


def fault(text: str) -> NotYaml | None:
    """Why no YAML reader accepts the text; None if one may: limits, tags and several documents are not checked."""
    levels = 0
    try:
        for event in yaml.parse(text, Loader=_Base):
            levels += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if levels > MOST_LEVELS:  # the half in C would end the process for some thousands
                return None
    except (yaml.scanner.ScannerError, yaml.parser.ParserError) as error:
        return NotYaml(_not_yaml(text, one_line(error.problem or error), error.problem_mark), error.problem_mark)
    except (yaml.YAMLError, UnicodeError):  # a character that PyYAML does not take
        return None
    return None


def _not_yaml(text: str, reason: str, mark: Any) -> str:
    if mark is None:
        return tr("not YAML: {reason}", reason=reason)
    line = "".join(text.split("\n")[mark.line : mark.line + 1])  # none for the end of the text
    found = line[mark.column : mark.column + 1]
    if found == "\t" and "character" in reason:
        reason = tr("a tab before the text; indent with blanks")
    elif found and reason.startswith("found character"):  # PyYAML's half in C does not state which one
        reason = tr("a text cannot begin with {character}; put it in quotes", character=shown(found))
    return tr("not YAML: {reason} (column {column})", reason=reason, column=mark.column + 1)


def _too_deep() -> str:
    return tr("more than {most} levels inside each other; a config has five", most=MOST_LEVELS)


class _Loader(_Base):
    """YAML 1.1 as PyYAML reads it; but 1e-3 is the number that it looks like, as in YAML 1.2, not a text."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node.  Raises NotYaml for a text that is not of its type, where PyYAML raises anything."""
        kind = node.tag.rpartition(":")[2]
        if kind in ("int", "float") and len(node.value) > _MOST_DIGITS:  # int() is slow for them, or raises
            reason = tr(
                "{value} has more than {most} digits; write a number, or put a text in quotes",
                value=short(node.value),
                most=_MOST_DIGITS,
            )
            raise NotYaml(reason, node.start_mark, wants_quotes=True)
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError, AttributeError, LookupError, TypeError) as error:
            raise _refused(node, kind) from error


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+$"), list("+-0123456789"))


def _refused(node: yaml.Node, kind: str) -> NotYaml:
    found = short(node.value) if isinstance(node, yaml.ScalarNode) else tr("this group")
    reason = tr(
        "YAML reads {found} as {kind}, but it is not one; write {wanted}, or put a text in quotes",
        found=found,
        kind=kind,
        wanted=_wanted(kind),
    )
    return NotYaml(reason, node.start_mark, wants_quotes=True)


def _wanted(kind: str) -> str:
    """What a value of a YAML type looks like; the type is guessed from the text, or written before it as !!float."""
    known = {
        "bool": tr("true or false"),
        "int": tr("a whole number such as 12"),
        "float": tr("a number such as 0.5"),
        "timestamp": tr("a date such as 2024-01-31"),
        "binary": tr("text in base64"),
    }
    return known.get(kind) or tr("what YAML calls {kind}", kind=short(kind))


class _Part:
    """A value while it is read: its anchor, its size, and the levels in it."""

    def __init__(self, anchor: str | None = None, text: str = "") -> None:
        self.anchor = anchor
        self.size = _VALUE + len(text)
        self.levels = 0

    def take(self, inner: _Part) -> None:
        """Makes `inner` a part of this list or group."""
        self.size += inner.size
        self.levels = max(self.levels, inner.levels + 1)


def _measure(text: str) -> None:
    """Raises NotYaml for a text whose values, with every alias written out, are too many, too long or too deep."""
    around = [_Part()]
    known: dict[str | None, _Part] = {}
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            around.append(_Part(event.anchor))
        ended = _ended(event, around, known)
        if ended:
            around[-1].take(ended)
            if ended.anchor:
                known[ended.anchor] = ended
        if len(around) + around[-1].levels > MOST_LEVELS:
            raise NotYaml(_too_deep(), event.start_mark)
        if around[-1].size > _MOST_SIZE:
            reason = tr(
                "more than {most} characters once its aliases (*NAME) are written out; a config is short",
                most=_MOST_SIZE,
            )
            raise NotYaml(reason, event.start_mark)


def _ended(event: yaml.Event, around: list[_Part], known: dict[str | None, _Part]) -> _Part | None:
    """The value that ends with the event, if one does; its list or group is then the last of `around`."""
    if isinstance(event, yaml.CollectionEndEvent):
        return around.pop()
    if isinstance(event, yaml.ScalarEvent):
        return _Part(event.anchor, event.value)
    if not isinstance(event, yaml.AliasEvent):
        return None
    if any(event.anchor == part.anchor for part in around):
        raise NotYaml(
            tr("*{anchor} is part of itself; write the values out", anchor=short(event.anchor)), event.start_mark
        )
    return known.get(event.anchor, around[0])  # PyYAML refuses an alias of nothing


def _refuse_duplicates(root: yaml.Node | None) -> None:
    """YAML forbids a key that a section has twice; PyYAML would silently take the last."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, (yaml.MappingNode, yaml.SequenceNode)):
            continue
        seen.add(id(node))  # an alias leads to the same node again
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
            continue
        firsts: dict[str, yaml.Node] = {}
        for key, value in node.value:
            waiting += [key, value]
            first = firsts.setdefault(key.value, key) if isinstance(key, yaml.ScalarNode) else key
            if first is not key and key.value != "<<":
                before = first.start_mark.line + 1
                raise NotYaml(
                    tr("{value} is on line {before} too; delete one of the two", value=short(key.value), before=before),
                    key.start_mark,
                )
