"""What docs/json.md and its Chinese page say of the JSON of a command, for the tests that have such a document."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/json.md", "docs/zh/json.md")


def documented(command, page="docs/json.md"):
    """The names in the table of the command."""
    text = (ROOT / page).read_text(encoding="utf-8")
    _, heading, section = text.partition(f"\n## {command}\n")
    assert heading, f"{page} has no part about {command}"
    return re.findall(r"^\| `([^`]+)` \|", section.partition("\n## ")[0], re.MULTILINE)


def leaves(value, path=""):
    """The names of everything in a document, as the page writes them."""
    inside = []
    if isinstance(value, dict):
        inside = [leaf for key, inner in value.items() for leaf in leaves(inner, f"{path}.{key}" if path else key)]
    elif isinstance(value, list):
        inside = [leaf for inner in value for leaf in leaves(inner, f"{path}[]")]
    return set(inside or [path])


def check(command, *documents):
    """Asserts that each name is documented, and that these documents have each name that is."""
    names = documented(command)
    assert names == documented(command, PAGES[1])
    found = set().union(*map(leaves, documents))
    open_ends = {name: name[:-1] for name in names if name.endswith(".*")}
    found = {next((name for name, start in open_ends.items() if leaf.startswith(start)), leaf) for leaf in found}
    empty = {leaf for leaf in found if any(re.match(re.escape(leaf) + r"[.\[]", name) for name in names)}
    assert (found - empty - set(names), set(names) - found) == (set(), set())
