"""What is true of each comment, as a table."""

from collections.abc import Sequence

import pyarrow as pa

from modwatch.ingest.community.kinds import KINDS
from modwatch.ingest.community.latents import Latents
from modwatch.ingest.community.lexicon import GROUPS

#: What is true of each comment; people and models are measured against it.
TRUTH = pa.schema(
    [
        ("comment_id", pa.string()),
        ("toxicity", pa.float64()),  # (0, 1): share of an ideal crowd that calls it toxic
        ("difficulty", pa.float64()),  # [0, 1]: 1 − |2·toxicity − 1|
        ("label", pa.int8()),  # 1 when toxicity > 0.5
        ("kind", pa.string()),  # see kinds.KINDS; `greeting` for sound comments among the dirt
        ("groups", pa.list_(pa.string())),
    ]
)

#: Toxicity of the sound comments among the dirt: greetings that nobody minds.
GREETING_TOXICITY = 0.01


def mentions(latents: Latents) -> list[list[str]]:
    """Return the groups that each comment mentions: none or one."""
    return [[GROUPS[g]] if g >= 0 else [] for g in latents.mention.tolist()]


def truth_table(comment_ids: Sequence[str], latents: Latents) -> pa.Table:
    """Return the truth of N comments, schema TRUTH."""
    columns = [
        comment_ids,
        latents.toxicity,
        latents.difficulty,
        latents.label,
        [KINDS[k].name for k in latents.kind.tolist()],
        mentions(latents),
    ]
    arrays = [pa.array(c, field.type) for c, field in zip(columns, TRUTH, strict=True)]
    return pa.Table.from_arrays(arrays, schema=TRUTH)


def greeting_table(comment_ids: Sequence[str]) -> pa.Table:
    """Return the truth of the sound comments among the dirt, schema TRUTH."""
    row = {
        "toxicity": GREETING_TOXICITY,
        "difficulty": 2 * GREETING_TOXICITY,
        "label": 0,
        "kind": "greeting",
        "groups": [],
    }
    return pa.Table.from_pylist([{"comment_id": c, **row} for c in comment_ids], schema=TRUTH)
