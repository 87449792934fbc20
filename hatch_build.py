"""The README as a page of a package index, whose reader has none of the files beside it."""

from __future__ import annotations

import os
import re

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n*")
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)[^)]*\)")
_COMMENT = re.compile(r"(?m)^ *<!-- .*? -->\n")


def for_an_index(text: str) -> str:
    """The text without pictures, links to files beside it, and the comments for tests; other links stay."""
    return _LINK.sub(r"\1", _PICTURE.sub("", _COMMENT.sub("", text)))


class Readme(MetadataHookInterface):
    """hatchling asks this for what pyproject.toml calls dynamic."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, object]) -> None:
        """Sets the description of the package."""
        with open(os.path.join(self.root, "README.md"), encoding="utf-8") as file:
            metadata["readme"] = {"content-type": "text/markdown", "text": for_an_index(file.read())}
