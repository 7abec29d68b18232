"""What was judged, and with what outcome, in the log; events as a hash chain."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, rename the account events, and chain them."""
    op.add_column("decision", sa.Column("text_digest", sa.LargeBinary))
    op.add_column("decision", sa.Column("outcome", sa.Text))
    op.create_check_constraint(
        op.f("decision_outcome_check"),
        "decision",
        "format < 3 OR (text_digest IS NOT NULL AND outcome IS NOT NULL)",
    )
    # Only the owner may analyze a table.
    op.execute(
        """
        CREATE FUNCTION analyze_outbox() RETURNS void LANGUAGE plpgsql
        SECURITY DEFINER SET search_path = public, pg_temp AS $$
        BEGIN
            ANALYZE outbox_message, outbox_delivery;
        END $$
        """
    )
    _rename_events()
    _create_chain()
    _chain_events()
    _record_state()
    op.create_unique_constraint("event_position_key", "event", ["position"])
    for column in ("position", "previous_hash", "hash"):
        op.alter_column("event", column, nullable=False)
    for name in ("rows", "table"):
        op.execute(f"ALTER TABLE event ENABLE TRIGGER event_append_only_{name}")


def downgrade() -> None:
    """Refuse: rows of format 3 cannot be verified without the columns."""
    raise NotImplementedError("revision 0008 may hold decisions; go back to a backup instead")


def _rename_events() -> None:
    op.rename_table("account_event", "event")
    for statement in (
        "ALTER SEQUENCE account_event_id_seq RENAME TO event_id_seq",
        "ALTER INDEX account_event_pkey RENAME TO event_pkey",
        "ALTER INDEX account_event_subject_id_idx RENAME TO event_subject_id_idx",
        "ALTER TABLE event RENAME CONSTRAINT account_event_actor_id_fkey TO event_actor_id_fkey",
        "ALTER TABLE event RENAME CONSTRAINT account_event_subject_id_fkey "
        "TO event_subject_id_fkey",
        "ALTER FUNCTION account_event_is_append_only RENAME TO event_is_append_only",
        """
        CREATE OR REPLACE FUNCTION event_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'events are append-only' USING ERRCODE = 'restrict_violation';
        END $$
        """,
        *(
            f"ALTER TRIGGER account_event_append_only_{name} ON event "
            f"RENAME TO event_append_only_{name}"
            for name in ("rows", "table")
        ),
        *(
            f"ALTER TABLE event DISABLE TRIGGER event_append_only_{name}"
            for name in ("rows", "table")
        ),
    ):
        op.execute(statement)


def _create_chain() -> None:
    op.create_table(
        "event_chain",
        sa.Column("id", sa.SmallInteger, nullable=False, server_default="1", autoincrement=False),
        sa.Column("length", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="event_chain_pkey"),
        sa.CheckConstraint("id = 1", name=op.f("event_chain_id_check")),
    )
    op.execute("INSERT INTO event_chain (length, hash) VALUES (0, decode(repeat('00', 32), 'hex'))")
    for column in (
        sa.Column("position", sa.BigInteger),
        sa.Column("previous_hash", sa.LargeBinary),
        sa.Column("hash", sa.LargeBinary),
    ):
        op.add_column("event", column)


#: Chains the event `:id`, the next in order.
_CHAIN = sa.text(
    r"""
    WITH chain AS (SELECT length + 1 AS position, hash FROM event_chain),
    chained AS (
        UPDATE event SET position = chain.position, previous_hash = chain.hash,
            hash = sha256(chain.hash || convert_to(json_build_array(
                chain.position, actor_id, subject_id, action, details,
                (extract(epoch from happened_at) * 1000000)\:\:bigint)\:\:text, 'UTF8'))
        FROM chain WHERE event.id = :id
        RETURNING event.position, event.hash
    )
    UPDATE event_chain SET length = chained.position, hash = chained.hash FROM chained
    """
)


def _chain_events() -> None:
    connection = op.get_bind()
    for id_ in connection.scalars(sa.text("SELECT id FROM event ORDER BY id")).all():
        connection.execute(_CHAIN, {"id": id_})


def _record_state() -> None:
    """Record accounts, gold comments and policies as they are now: earlier events do not say."""
    connection = op.get_bind()
    for row in connection.execute(
        sa.text("SELECT id, pseudonym, role, disabled_at FROM moderator ORDER BY id")
    ):
        disabled = row.disabled_at is not None
        details = {"pseudonym": row.pseudonym, "role": row.role, "disabled": disabled}
        _record("record_account", details, subject_id=row.id)
    for row in connection.execute(
        sa.text(
            r"""
            SELECT comment_id, retired_at, encode(sha256(convert_to(json_build_array(comment_id,
                text, parent_text, language, platform, label, policy_code, source)\:\:text,
                'UTF8')), 'hex') AS digest
            FROM gold_comment ORDER BY comment_id
            """
        )
    ):
        action = "add_gold" if row.retired_at is None else "retire_gold"
        _record(action, {"comment_id": row.comment_id, "digest": row.digest})
    for row in connection.execute(sa.text("SELECT version, digest FROM policy_version ORDER BY 1")):
        _record("register_policy", {"version": row.version, "digest": row.digest})


def _record(action: str, details: dict[str, object], *, subject_id: int | None = None) -> None:
    connection = op.get_bind()
    inserted = sa.text(
        "INSERT INTO event (action, subject_id, details) "
        "VALUES (:action, :subject_id, CAST(:details AS jsonb)) RETURNING id"
    )
    values = {"action": action, "subject_id": subject_id, "details": json.dumps(details)}
    connection.execute(_CHAIN, {"id": connection.execute(inserted, values).scalar_one()})
