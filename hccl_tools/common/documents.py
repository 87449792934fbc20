"""The type of what is read from a JSON or YAML file."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import TypeAlias

JsonObject: TypeAlias = "dict[str, Any]"  # a JSON object; the values may be anything
