"""--per_rank_words: arguments of a command that differ from rank to rank, such as --device_id={device}.

Only the names of `of_rank` in braces are replaced, so that the arguments of a program may have other braces; {{rank}}
stays as {rank}.  The launcher or the agent of a rank replaces them when it starts the rank.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tools.launch.planned import Plan

NAMES = ("rank", "local_rank", "device", "world_size", "run")


def of_rank(rank: int, local_rank: int, device: int | str, world: int | str, run_dir: str) -> dict[str, str]:
    """{name: what it means for this rank}; local_rank: its number on its host; run_dir: the run's folder."""
    return dict(zip(NAMES, (str(rank), str(local_rank), str(device), str(world), run_dir)))


def replaced(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words of one rank."""
    return ["".join(_parts(word, values)) for word in words]


def _parts(word: str, values: Mapping[str, str]) -> Iterator[str]:
    at = 0
    while (begin := word.find("{", at)) >= 0:
        end = word.find("}", begin)
        name = word[begin + 1 : max(begin, end)]
        if name in values:
            yield word[at:begin] + values[name]
            at = end + 1
        elif name[:1] == "{" and name[1:] in values and word[end + 1 : end + 2] == "}":
            yield word[at:begin] + name + "}"
            at = end + 2
        else:
            yield word[at : begin + 1]
            at = begin + 1
    yield word[at:]


def has_any(word: str) -> bool:
    """Whether the word has a name in braces."""
    return any(f"{{{name}}}" in word for name in NAMES)


def on_nodes(nodes: str) -> list[str]:
    """The words before a command that put its memory on these NUMA nodes: numactl becomes the command."""
    return ["numactl", "--membind", nodes, "--"]


def command(plan: Plan, words: list[str], rank: int, local_rank: int, device: int | str) -> list[str]:
    """The words of a rank of this plan."""
    nodes = plan.binding.memory.get(rank) if plan.binding else None
    if nodes:
        return [*on_nodes(",".join(map(str, nodes))), *_own_words(plan, words, rank, local_rank, device)]
    return _own_words(plan, words, rank, local_rank, device)


def _own_words(plan: Plan, words: list[str], rank: int, local_rank: int, device: int | str) -> list[str]:
    if not plan.request.per_rank_words:
        return words
    return replaced(words, of_rank(rank, local_rank, device, plan.exports["RANK_SIZE"], plan.run_dir))


def own(plan: Plan) -> Iterator[tuple[int, list[str]]]:
    """(rank, those words of its command that are its own) for each rank of the plan, with --per_rank_words."""
    if not plan.request.per_rank_words:
        return
    words = [word for word in plan.trainer if has_any(word)]
    device_ids = getattr(plan.engine, "device_ids", [])
    before, local_rank = None, -1
    for index, (rank, device) in enumerate(plan.ranks):
        host = plan.hosts[index] if plan.hosts else ""
        before, local_rank = host, local_rank + 1 if host == before else 0
        named = device_ids[local_rank] if device_ids else device
        yield rank, _own_words(plan, words, rank, local_rank, named)
