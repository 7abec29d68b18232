"""The moderators' desk: queues, order of service, k labels an item, amendments, bulk closing."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_KINDS = "kind IN ('review', 'retest', 'gold', 'audit', 'second_opinion', 'imported')"
_STATUSES = "status IN ('waiting', 'blocked', 'escalated', 'decided', 'withdrawn', 'closed')"
_ACTIONS = (
    "action IN ('label', 'adjudicate', 'correct', 'skip', 'escalate', 'undo', 'close', 'reopen')"
)
_FREE_FOR_ALL = sa.text("status = 'waiting' AND reserved_for IS NULL")


def upgrade() -> None:
    """Add the columns, and give items in the queue what they would have got."""
    _create_bulk_close()
    _extend_items()
    _index_items()
    _extend_log()
    _create_known()
    _carry_over()


def downgrade() -> None:
    """Refuse: the log may hold actions that older tables cannot."""
    raise NotImplementedError("revision 0004 may hold amendments; go back to a backup instead")


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now())


def _create_bulk_close() -> None:
    op.create_table(
        "bulk_close",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("moderator_id", sa.BigInteger, nullable=False),
        sa.Column("criteria", JSONB, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("matched", sa.BigInteger, nullable=False),
        _moment("started_at"),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("cancelled_at", sa.DateTime(timezone=True)),
        sa.Column("cancelled_by", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="bulk_close_pkey"),
        *(
            sa.ForeignKeyConstraint([column], ["moderator.id"], name=f"bulk_close_{column}_fkey")
            for column in ("moderator_id", "cancelled_by")
        ),
    )


def _extend_items() -> None:
    for column in (
        sa.Column("queue", sa.Text, nullable=False, server_default="general"),
        _moment("serve_by"),
        _moment("due_at"),
        sa.Column("labels_wanted", sa.SmallInteger, nullable=False, server_default="1"),
        sa.Column("excluded", ARRAY(sa.BigInteger), nullable=False, server_default="{}"),
        sa.Column("reserved_for", sa.BigInteger),
        sa.Column("bulk_close_id", sa.BigInteger),
    ):
        op.add_column("review_item", column)
    for key, target in (("reserved_for", "moderator"), ("bulk_close_id", "bulk_close")):
        op.create_foreign_key(f"review_item_{key}_fkey", "review_item", target, [key], ["id"])
    _replace_check("review_item", "kind", _KINDS)
    _replace_check("review_item", "status", _STATUSES)
    op.create_check_constraint(
        op.f("review_item_labels_wanted_check"), "review_item", "labels_wanted BETWEEN 1 AND 9"
    )
    op.drop_constraint("review_item_dt_comment_id_kind_key", "review_item")
    op.create_unique_constraint(
        "review_item_dt_comment_id_kind_reserved_for_key",
        "review_item",
        ["dt", "comment_id", "kind", "reserved_for"],
        postgresql_nulls_not_distinct=True,
    )
    op.create_table(
        "lane",
        sa.Column("queue", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("queue", "reason", name="lane_pkey"),
    )


def _index_items() -> None:
    op.drop_index("review_item_waiting_idx", "review_item")
    for name, columns, condition in (
        ("lane", ["queue", "reason", "serve_by", "id"], _FREE_FOR_ALL),
        (
            "reserved",
            ["reserved_for", "serve_by", "id"],
            sa.text("status = 'waiting' AND reserved_for IS NOT NULL"),
        ),
        ("escalated", ["queue", "serve_by", "id"], sa.text("status = 'escalated'")),
        ("comment_id", ["comment_id"], None),
        ("bulk_close_id", ["bulk_close_id"], sa.text("bulk_close_id IS NOT NULL")),
    ):
        op.create_index(
            f"review_item_{name}_idx", "review_item", columns, postgresql_where=condition
        )


def _extend_log() -> None:
    for name, kind in (
        ("policy_version", sa.Text),
        ("reason", sa.Text),
        ("refers_to", sa.BigInteger),
    ):
        op.add_column("decision", sa.Column(name, kind))
    op.add_column(
        "decision", sa.Column("format", sa.SmallInteger, nullable=False, server_default="1")
    )
    op.execute(
        "ALTER TABLE decision ADD COLUMN transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id()"
    )
    op.create_foreign_key("decision_refers_to_fkey", "decision", "decision", ["refers_to"], ["id"])
    _replace_check("decision", "action", _ACTIONS)
    _replace_check(
        "decision",
        "label",
        "(action IN ('label', 'adjudicate', 'correct')) = (label IS NOT NULL)",
    )
    op.create_index("decision_transaction_id_idx", "decision", ["transaction_id", "id"])
    op.create_index(
        "decision_refers_to_idx",
        "decision",
        ["refers_to"],
        postgresql_where=sa.text("refers_to IS NOT NULL"),
    )
    op.create_index(
        "decision_decided_at_idx",
        "decision",
        ["decided_at"],
        postgresql_using="brin",
        postgresql_with={"pages_per_range": "16", "autosummarize": "on"},
    )
    op.drop_index("decision_skip_idx", "decision")


def _replace_check(table: str, name: str, condition: str) -> None:
    full_name = op.f(f"{table}_{name}_check")
    op.drop_constraint(full_name, table)
    op.create_check_constraint(full_name, table, condition)


def _create_known() -> None:
    op.create_table(
        "gold_comment",
        sa.Column("comment_id", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("parent_text", sa.Text),
        sa.Column("language", sa.Text),
        sa.Column("platform", sa.Text),
        sa.Column("label", sa.SmallInteger, nullable=False),
        sa.Column("policy_code", sa.Text),
        sa.Column("source", sa.Text, nullable=False),
        _moment("added_at"),
        sa.Column("retired_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("comment_id", name="gold_comment_pkey"),
        sa.CheckConstraint("label IN (0, 1)", name="label"),
    )
    op.create_table(
        "policy_version",
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("content", JSONB, nullable=False),
        _moment("registered_at"),
        sa.PrimaryKeyConstraint("version", name="policy_version_pkey"),
    )


def _carry_over() -> None:
    """Turn what older tables worked out at each lease into what the items now say."""
    op.execute("INSERT INTO lane SELECT DISTINCT queue, reason FROM review_item")
    op.execute(
        """
        UPDATE review_item SET
            serve_by = queued_at + interval '1 second' * least(rank, 86400),
            due_at = queued_at + interval '1 day',
            excluded = ARRAY(
                SELECT DISTINCT d.moderator_id FROM decision d
                JOIN review_item twin ON twin.id = d.item_id
                WHERE twin.dt = review_item.dt AND twin.comment_id = review_item.comment_id
            )
        WHERE status = 'waiting'
        """
    )
    op.execute(
        """
        UPDATE review_item SET status = 'blocked'
        WHERE status = 'waiting' AND kind = 'second_opinion' AND NOT EXISTS (
            SELECT FROM review_item first
            WHERE first.dt = review_item.dt AND first.comment_id = review_item.comment_id
                AND first.kind = 'review' AND first.status = 'decided'
                AND first.text = review_item.text
        )
        """
    )
