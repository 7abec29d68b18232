"""Passwords, scopes, queues of people, log-in throttle, and who changed which account."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and tables; whoever had a token keeps it."""
    _extend_people()
    _extend_tokens()
    _create_throttle()
    _create_events()


def downgrade() -> None:
    """Refuse: account events are never dropped."""
    raise NotImplementedError("revision 0005 holds account events; go back to a backup instead")


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now())


def _extend_people() -> None:
    for column in (
        sa.Column("password_hash", sa.Text),
        sa.Column("oidc_subject", sa.Text),
        sa.Column("disabled_at", sa.DateTime(timezone=True)),
        sa.Column("preferences", JSONB, nullable=False, server_default="{}"),
    ):
        op.add_column("moderator", column)
    op.create_unique_constraint("moderator_oidc_subject_key", "moderator", ["oidc_subject"])
    op.create_table(
        "moderator_queue",
        sa.Column("moderator_id", sa.BigInteger, nullable=False),
        sa.Column("queue", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("moderator_id", "queue", name="moderator_queue_pkey"),
        sa.ForeignKeyConstraint(
            ["moderator_id"], ["moderator.id"], name="moderator_queue_moderator_id_fkey"
        ),
    )


def _extend_tokens() -> None:
    op.add_column(
        "access_token", sa.Column("id", sa.BigInteger, sa.Identity(always=True), nullable=False)
    )
    op.create_unique_constraint("access_token_id_key", "access_token", ["id"])
    op.add_column("access_token", sa.Column("name", sa.Text))
    op.add_column("access_token", sa.Column("scopes", ARRAY(sa.Text)))


def _create_throttle() -> None:
    op.create_table(
        "login_attempt",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("origin", sa.LargeBinary, nullable=False),
        _moment("failed_at"),
        sa.PrimaryKeyConstraint("id", name="login_attempt_pkey"),
    )
    op.create_index("login_attempt_origin_idx", "login_attempt", ["origin", "failed_at"])
    op.create_index("login_attempt_failed_at_idx", "login_attempt", ["failed_at"])


def _create_events() -> None:
    op.create_table(
        "account_event",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("actor_id", sa.BigInteger),
        sa.Column("subject_id", sa.BigInteger),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("details", JSONB, nullable=False, server_default=sa.text("'{}'::jsonb")),
        _moment("happened_at"),
        sa.PrimaryKeyConstraint("id", name="account_event_pkey"),
        *(
            sa.ForeignKeyConstraint([column], ["moderator.id"], name=f"account_event_{column}_fkey")
            for column in ("actor_id", "subject_id")
        ),
    )
    op.create_index("account_event_subject_id_idx", "account_event", ["subject_id"])
    op.execute(
        """
        CREATE FUNCTION account_event_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'account events are append-only' USING ERRCODE = 'restrict_violation';
        END $$
        """
    )
    for name, event, each in (
        ("rows", "UPDATE OR DELETE", "ROW"),
        ("table", "TRUNCATE", "STATEMENT"),
    ):
        op.execute(
            f"CREATE TRIGGER account_event_append_only_{name} BEFORE {event} ON account_event "
            f"FOR EACH {each} EXECUTE FUNCTION account_event_is_append_only()"
        )
