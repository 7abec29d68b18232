"""The queue, the people who work it and the decision log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables and the trigger that keeps the log append-only."""
    _create_people()
    _create_items()
    _create_log()
    op.execute(
        """
        CREATE FUNCTION decision_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'the decision log is append-only; append a compensating decision'
                USING ERRCODE = 'restrict_violation';
        END $$
        """
    )
    op.execute(
        """
        CREATE TRIGGER decision_append_only_rows BEFORE UPDATE OR DELETE ON decision
            FOR EACH ROW EXECUTE FUNCTION decision_is_append_only()
        """
    )
    op.execute(
        """
        CREATE TRIGGER decision_append_only_table BEFORE TRUNCATE ON decision
            FOR EACH STATEMENT EXECUTE FUNCTION decision_is_append_only()
        """
    )


def downgrade() -> None:
    """Refuse: going back would drop every decision."""
    raise NotImplementedError("revision 0001 holds the decision log; drop the database instead")


def _created_at(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now())


def _create_people() -> None:
    op.create_table(
        "moderator",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("pseudonym", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        _created_at("created_at"),
        sa.PrimaryKeyConstraint("id", name="moderator_pkey"),
        sa.UniqueConstraint("pseudonym", name="moderator_pseudonym_key"),
        sa.CheckConstraint(
            "role IN ('moderator', 'lead', 'auditor', 'ops', 'admin')",
            name="role",
        ),
    )
    op.create_table(
        "moderator_group",
        sa.Column("moderator_id", sa.BigInteger, nullable=False),
        sa.Column("group_name", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("moderator_id", name="moderator_group_pkey"),
        _moderator_key("moderator_group", "moderator_id"),
    )
    op.create_table(
        "access_token",
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("moderator_id", sa.BigInteger, nullable=False),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("opened_with", sa.LargeBinary),
        _created_at("created_at"),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("digest", name="access_token_pkey"),
        _moderator_key("access_token", "moderator_id"),
        sa.ForeignKeyConstraint(
            ["opened_with"], ["access_token.digest"], name="access_token_opened_with_fkey"
        ),
        sa.CheckConstraint("purpose IN ('api', 'session')", name="purpose"),
    )
    op.create_index("access_token_moderator_id_idx", "access_token", ["moderator_id"])
    op.create_index("access_token_opened_with_idx", "access_token", ["opened_with"])


def _moderator_key(table: str, column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], ["moderator.id"], name=f"{table}_{column}_fkey")


def _create_items() -> None:
    op.create_table(
        "review_item",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("dt", sa.Date, nullable=False),
        sa.Column("comment_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("parent_text", sa.Text),
        sa.Column("language", sa.Text),
        sa.Column("platform", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("stratum", sa.Integer, nullable=False),
        sa.Column("inclusion_probability", sa.Double, nullable=False),
        sa.Column("rank", sa.BigInteger, nullable=False),
        sa.Column("review_score", sa.Double, nullable=False),
        sa.Column("prob", sa.REAL, nullable=False),
        sa.Column("uncertainty", sa.REAL, nullable=False),
        sa.Column("model_version", sa.Text, nullable=False),
        _created_at("queued_at"),
        sa.Column("status", sa.Text, nullable=False, server_default="waiting"),
        sa.Column("lease_digest", sa.LargeBinary),
        sa.Column("leased_by", sa.BigInteger),
        sa.Column("leased_until", sa.DateTime(timezone=True)),
        sa.Column("claimed_at", sa.DateTime(timezone=True)),
        sa.Column("version", sa.Integer, nullable=False, server_default="1"),
        sa.PrimaryKeyConstraint("id", name="review_item_pkey"),
        sa.UniqueConstraint("dt", "comment_id", "kind", name="review_item_dt_comment_id_kind_key"),
        _moderator_key("review_item", "leased_by"),
        *_item_checks(),
        postgresql_with={"fillfactor": "80", "autovacuum_vacuum_scale_factor": "0.02"},
    )
    op.create_index(
        "review_item_waiting_idx",
        "review_item",
        ["dt", "rank", "id"],
        postgresql_where=sa.text("status = 'waiting'"),
    )
    op.create_index("review_item_status_idx", "review_item", ["status", "dt"])


def _item_checks() -> list[sa.CheckConstraint]:
    return [
        sa.CheckConstraint("kind IN ('review', 'retest', 'gold', 'audit')", name="kind"),
        sa.CheckConstraint("status IN ('waiting', 'decided', 'withdrawn')", name="status"),
        sa.CheckConstraint(
            "inclusion_probability > 0 AND inclusion_probability <= 1",
            name="inclusion_probability",
        ),
    ]


def _create_log() -> None:
    op.create_table(
        "decision",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("item_id", sa.BigInteger, nullable=False),
        sa.Column("dt", sa.Date, nullable=False),
        sa.Column("comment_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("item_version", sa.Integer, nullable=False),
        sa.Column("moderator_id", sa.BigInteger, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("label", sa.SmallInteger),
        sa.Column("policy_code", sa.Text),
        sa.Column("note", sa.Text),
        sa.Column("seconds", sa.Double),
        sa.Column("idempotency_key", sa.Text, nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("previous_hash", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="decision_pkey"),
        *_log_constraints(),
    )
    op.create_index("decision_item_id_idx", "decision", ["item_id"])
    op.create_index(
        "decision_skip_idx",
        "decision",
        ["moderator_id", "item_id"],
        postgresql_where=sa.text("action = 'skip'"),
    )
    op.create_index("decision_dt_idx", "decision", ["dt"])
    op.create_table(
        "decision_chain",
        sa.Column("moderator_id", sa.BigInteger, nullable=False),
        sa.Column("length", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("moderator_id", name="decision_chain_pkey"),
        _moderator_key("decision_chain", "moderator_id"),
    )


def _log_constraints() -> list[sa.Constraint]:
    return [
        sa.ForeignKeyConstraint(["item_id"], ["review_item.id"], name="decision_item_id_fkey"),
        _moderator_key("decision", "moderator_id"),
        sa.UniqueConstraint(
            "moderator_id", "idempotency_key", name="decision_moderator_id_idempotency_key_key"
        ),
        sa.UniqueConstraint("moderator_id", "position", name="decision_moderator_id_position_key"),
        sa.CheckConstraint("action IN ('label', 'skip', 'escalate', 'undo')", name="action"),
        sa.CheckConstraint("(action = 'label') = (label IS NOT NULL)", name="label"),
        sa.CheckConstraint("seconds >= 0", name="seconds"),
    ]
