"""Gold comments: comments whose label is known, from a panel, a corpus, or unanimous people.

`queueing` serves them to moderators unmarked, and `agreement` computes how often the answer is the
known label. Moderators see a comment's id, so use ids that look like all others.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import (
    Connection,
    Engine,
    RowMapping,
    and_,
    case,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects import postgresql

from modwatch.common.account import Account
from modwatch.common.columns import Column
from modwatch.common.errors import QueueError
from modwatch.common.text import ERASED, text_problem
from modwatch.data.sources.delimited import TextFormat
from modwatch.data.sources.readers import Record, read_records, require_columns, table_columns
from modwatch.data.sources.values import USUAL, Vocabulary, vote_of
from modwatch.review.events import record_event
from modwatch.review.log.labels import in_force
from modwatch.review.log.recorded_state import GOLD_COMMITMENT
from modwatch.review.queue.comments import REASONS, comment_of
from modwatch.review.queue.intake import withdraw
from modwatch.review.queue.items import content_columns, content_of
from modwatch.review.tables import (
    FINAL_ACTIONS,
    ROUTED_KINDS,
    decision,
    gold_comment,
    moderator,
    review_item,
)

#: The columns that a file of gold comments must have.
_REQUIRED = ("comment_id", "text", "label", "source")


@dataclass(frozen=True, kw_only=True)
class GoldComment:
    """One comment and its known label; its repr never contains its text.

    >>> GoldComment(comment_id="c1", text="private", label=1, source="panel of March")
    GoldComment(comment_id='c1', label=1, source='panel of March')
    """

    comment_id: str
    text: str = field(repr=False)
    #: 1 toxic, 0 not.
    label: int
    #: Where the label comes from: a person, a panel, a published corpus.
    source: str
    parent_text: str | None = field(default=None, repr=False)
    #: See `queue.items.content_of`.
    shown: Mapping[str, Any] = field(default_factory=dict, repr=False)
    policy_code: str | None = field(default=None, repr=False)


def gold_of(
    values: Mapping[str, Any], vocabulary: Vocabulary = USUAL, own: Sequence[Column] = ()
) -> tuple[GoldComment | None, str | None]:
    """Return the gold comment of a record, and its problem.

    One of them is None; the problem is a key of `REASONS`. The values are named as the fields, and
    what moderators see as the columns, with the platform's `own`. Other values are ignored.

    >>> gold_of({"comment_id": 1, "text": "private", "label": "yes", "source": "p"})[0]
    GoldComment(comment_id='1', label=1, source='p')
    >>> gold_of({"comment_id": 1, "text": "private", "label": "maybe", "source": "p"})
    (None, 'unreadable_label')
    """
    texts, problem = comment_of(values, "source", "policy_code", own=own)
    label, unreadable = vote_of(values.get("label"), vocabulary)
    problem = problem or unreadable or ("missing_label" if label is None else None)
    if problem is None and text_problem(texts["source"]):
        problem = "missing_source"
    if problem or label is None:
        return None, problem
    known = {name: texts[name] for name in ("source", "policy_code")} | content_of(texts, own)
    if isinstance(values.get("shown"), Mapping):  # a gold comment, not a record of columns
        known["shown"] = values["shown"]
    return GoldComment(label=label, **known), None


def add_gold(engine: Engine, comments: Iterable[GoldComment]) -> int:
    """Add gold comments, all or none; return how many are new, or active again after `retire_gold`.

    An existing gold comment stays unchanged. Raises `QueueError` if its text or label differs
    (retire it first: earlier answers then no longer count), or if a comment cannot be stored.
    """
    records = [Record(line=n, values=asdict(comment)) for n, comment in enumerate(comments, 1)]
    with engine.begin() as connection:
        return len(_add_all(connection, records, "number", "the list", Account(read=len(records))))


def add_gold_file(
    engine: Engine,
    path: Path,
    form: TextFormat,
    vocabulary: Vocabulary = USUAL,
    own: Sequence[Column] = (),
) -> tuple[int, Account]:
    """Add the gold comments of a file, as `add_gold` does; return how many are new, and an account.

    The columns are named as the values of `gold_of`. Exact duplicates are merged. Raises
    `QueueError` naming every reason why records cannot be gold, with the line of the first.
    """
    account = Account()
    names = table_columns(path, form=form)
    optional = {*content_columns(own)[2:], "policy_code"}
    known = {**dict.fromkeys(_REQUIRED, ""), **dict.fromkeys(optional & {*names}, "")}
    if names or not any(read_records(path, form=form)):  # else no record can be read
        require_columns(str(path), names, known)
    records = read_records(path, form=form, account=account)
    with engine.begin() as connection:
        added = _add_all(connection, records, "line", str(path), account, vocabulary, own)
        return len(added), account


def _add_all(
    connection: Connection,
    records: Iterable[Record],
    unit: str,
    source: str,
    account: Account,
    vocabulary: Vocabulary = USUAL,
    own: Sequence[Column] = (),
) -> list[str]:
    """Add gold comments and record it; return the ids of the new ones."""
    added, seen = [], dict[str, GoldComment]()
    for record in records:
        comment, problem = gold_of(record.values, vocabulary, own)
        place = record.problem or problem or "used"
        if comment is not None:
            first = seen.setdefault(comment.comment_id, comment)
            if first is not comment:
                place = "merged" if first == comment else "different_copy"
            elif (new := insert_gold(connection, asdict(comment), again=True)) is None:
                place = "other_gold"
            elif new:
                added.append(comment.comment_id)
        account.count(place, where=f"{unit} {record.line}")
    account.close(source)
    if account.left_out:
        faults = account.faults(REASONS)
        raise QueueError(f"nothing of {source} was added; correct its records: {faults}")
    record_gold(connection, "add_gold", added)
    return added


def retire_gold(engine: Engine, comment_ids: Collection[str]) -> int:
    """Retire gold comments; return how many were active.

    Their open items are withdrawn, and earlier answers no longer count: gold is retired because its
    label is doubtful, or because everyone knows it.
    """
    ids = list(comment_ids)
    with engine.begin() as connection:
        retired = connection.scalars(
            update(gold_comment)
            .where(gold_comment.c.comment_id.in_(ids), gold_comment.c.retired_at.is_(None))
            .values(retired_at=func.now())
            .returning(gold_comment.c.comment_id)
        ).all()
        withdraw(connection, review_item.c.kind == "gold", review_item.c.comment_id.in_(ids))
        record_gold(connection, "retire_gold", retired)
    return len(retired)


def gold_from_decisions(engine: Engine, item_ids: Iterable[int]) -> list[str]:
    """Make the comments of decided items gold, all or none; return the ids of the new ones.

    The label of an item that was escalated, or corrected by another person, is the final one.
    Otherwise at least two people must have labelled the comment, including confirmations, and
    unanimously. Raises `QueueError` for an item without such a label.
    """
    with engine.begin() as connection:
        records = [
            Record(line=item_id, values=asdict(_decided_comment(connection, item_id)))
            for item_id in item_ids
        ]
        return _add_all(connection, records, "item", "the items", Account(read=len(records)))


def record_gold(
    connection: Connection,
    action: Literal["add_gold", "retire_gold"],
    comment_ids: Collection[str],
) -> None:
    """Record what was done to gold comments as events, which commit to their texts and labels."""
    rows = select(gold_comment.c.comment_id, GOLD_COMMITMENT).where(
        gold_comment.c.comment_id.in_(comment_ids)
    )
    for comment_id, committed in connection.execute(rows.order_by(gold_comment.c.comment_id)):
        record_event(connection, action, actor_id=None, comment_id=comment_id, commitment=committed)


def insert_gold(connection: Connection, row: dict[str, Any], *, again: bool) -> bool | None:
    """Return whether the comment is newly gold; None: it is already, with another text or label.

    With `again`, a retired one is replaced and counts as new.
    """
    insertion = postgresql.insert(gold_comment).values(row)
    new = insertion.excluded
    same = and_(gold_comment.c.text == new.text, gold_comment.c.label == new.label)
    added = connection.scalar(
        insertion.on_conflict_do_update(
            index_elements=["comment_id"],
            set_={
                **{name: new[name] for name in row if name != "comment_id"},
                "retired_at": None,
                "added_at": case((same, gold_comment.c.added_at), else_=func.now()),
            },
            where=and_(gold_comment.c.retired_at.is_not(None), literal(again)),
        ).returning(gold_comment.c.comment_id)
    )
    known = select(gold_comment.c.text, gold_comment.c.label).where(
        gold_comment.c.comment_id == row["comment_id"]
    )
    if tuple(connection.execute(known).one()) != (row["text"], row["label"]):
        return None
    return added is not None


def _decided_comment(connection: Connection, item_id: int) -> GoldComment:
    """Return the item's comment with its final or unanimous label."""
    decided = select(review_item).where(
        review_item.c.id == item_id,
        review_item.c.status == "decided",
        review_item.c.kind.in_(ROUTED_KINDS),
        review_item.c.text != ERASED,
        review_item.c.parent_text.is_distinct_from(ERASED),
    )
    item = connection.execute(decided).mappings().one_or_none()
    if item is None:
        raise QueueError(
            f"item {item_id} is not a decided review item, or was erased; choose another"
        )
    label, policy_code, source = _final_label(connection, item)
    copied = ("comment_id", "text", "parent_text", "shown")
    return GoldComment(
        **{name: item[name] for name in copied},
        label=label,
        policy_code=policy_code,
        source=source,
    )


def _final_label(connection: Connection, item: RowMapping) -> tuple[int, str | None, str]:
    columns = ("action", "label", "policy_code", "moderator_id")
    rows = connection.execute(
        select(*(decision.c[name] for name in columns), moderator.c.pseudonym)
        .join(review_item, review_item.c.id == decision.c.item_id)
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(
            review_item.c.dt == item["dt"],
            review_item.c.comment_id == item["comment_id"],
            review_item.c.kind.in_(ROUTED_KINDS),
            in_force(*FINAL_ACTIONS),
        )
        .order_by(decision.c.id)
    ).all()
    labelled = {row.moderator_id for row in rows if row.action == "label"}
    final = [
        row
        for row in rows
        if row.action == "adjudicate"
        or (row.action == "correct" and row.moderator_id not in labelled)
    ]
    if final:
        return final[-1].label, final[-1].policy_code, f"settled by {final[-1].pseudonym}"
    last = {row.moderator_id: row for row in rows}
    if len(last) < 2 or len({row.label for row in last.values()}) > 1:
        raise QueueError(
            f"item {item['id']} has neither a unanimous label of two people nor a lead's label; "
            "choose another item"
        )
    return rows[-1].label, rows[-1].policy_code, f"unanimous, {len(last)} people"
