"""When a confirmation is called for: after which earlier labels of its comment.

The second person is asked if the first label is one of those that the draw at routing confirms, the
third if the first two differ. Until then a confirmation is blocked, and nobody is served it.
"""

#: The label in force of a routed item of the comment that `{0}` is about; null while it has none.
_LABEL = """(
    SELECT d.label FROM review_item earlier JOIN decision d ON d.item_id = earlier.id
    WHERE earlier.dt = {0}.dt AND earlier.comment_id = {0}.comment_id
        AND earlier.kind = '{1}' AND earlier.round = {2} AND earlier.status = 'decided'
        AND d.action IN ('label', 'adjudicate', 'correct')
        AND NOT EXISTS (SELECT FROM decision u WHERE u.refers_to = d.id AND u.action = 'undo')
    ORDER BY d.id DESC LIMIT 1
)"""


def earlier_label(item: str, round: int) -> str:
    """Return the SQL of the label of a round of the comment of `item`; null while it has none."""
    return _LABEL.format(item, "review" if round == 1 else "confirmation", round)


def called_for(item: str, first: str | None = None, second: str | None = None) -> str:
    """Return the SQL condition that the earlier labels call for the confirmation `item`.

    `first` and `second` are the SQL of these labels; by default they are looked up.

    >>> called_for("i", "1", "0")
    'COALESCE(CASE i.round WHEN 2 THEN 1 = ANY (i.confirms) WHEN 3 THEN 1 <> 0 END, false)'
    """
    first = first or earlier_label(item, 1)
    second = second or earlier_label(item, 2)
    return (
        f"COALESCE(CASE {item}.round WHEN 2 THEN {first} = ANY ({item}.confirms) "
        f"WHEN 3 THEN {first} <> {second} END, false)"
    )
