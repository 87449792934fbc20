"""Determines from a program's text whether each rank prints the loss of its own data, or whether that is unknown.

Nothing is run.  Under data parallel MindSpore's own callbacks print it, and so does a program that prints what its step
returns.  A program that also names another parallel mode, or adds up values of all ranks itself, may print a common
value of all ranks.
"""

from __future__ import annotations

import re

from tools.launch.programs import command_words, sources, trainer_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_DATA_PARALLEL = re.compile(rb"\bDATA_PARALLEL\b|[\"']data_parallel[\"']|\bDistributed(?:GradReducer|DataParallel)\b")
# Other modes, nets that are cut by hand, data that all ranks share, and values that the ranks exchange.
_OTHERWISE = re.compile(
    rb"\bSEMI_AUTO|\bAUTO_PARALLEL\b|[\"'](?:semi_)?auto_parallel[\"']|\bAutoParallel\b|hybrid_parallel|\bHYBRID|"
    rb"full_batch|dataset_strategy|layerwise_parallel|\.shard\(|pipeline_stages|"
    rb"\bAll(?:Reduce|Gather)\b|\ball_(?:reduce(?!_fusion)|gather)|\bReduceScatter\b|\breduce_scatter|\bBroadcast\b|\bReduce\b|\ballreduce",
    re.IGNORECASE,
)


def prints_own_losses(words: Sequence[str]) -> bool:
    """Whether the program of this command is known to do so."""
    at = command_words.program(words)
    if at < len(words) and command_words.is_python(words[at]):
        program = command_words.of_python(words[at + 1 :])[1]
    else:
        program = next((word for word in words[1:] if word.endswith(".py")), "")
    if not program or trainer_command.is_own(program):  # ours deals out the data itself
        return False
    texts = [text for _, text in sources.contents(program)]
    return any(map(_DATA_PARALLEL.search, texts)) and not any(map(_OTHERWISE.search, texts))
