"""Compares the messages about decisions with the log, from which each of them follows.

`outbox.decision_events` creates them; here they are computed once more, in another way. A message
has one fact that is not in the log, the DSA category: it must be one that a policy gives the code.
"""

from collections.abc import Iterator

from sqlalchemy import Connection, text

from modwatch.review.tables import ACTIONABLE_KINDS

_KINDS = ", ".join(f"'{kind}'" for kind in ACTIONABLE_KINDS)

#: Of the decisions that have been read, each with the current decision of its comment then: of each
#: kind of item the last decision, if it left the item decided; of several, the one decided last.
_STATES = f"""
    SELECT series, d.id, d.dt, d.comment_id, d.decided_at, d.transaction_id,
        current.label, current.policy_version, current.policy_code,
        CASE WHEN current.id IS NOT NULL THEN json_build_array(
            current.label, current.policy_version, current.policy_code)::text END AS state
    FROM (
        SELECT decision.*, concat(dt, '/', comment_id) AS series, greatest({{}}) AS last
        FROM outbox_cursor AS cursor JOIN decision
            ON (decision.transaction_id, id) <= (cursor.transaction_id, cursor.decision_id)
        WHERE topic = 'decision' AND kind IN ({_KINDS})
            AND action IN ('label', 'adjudicate', 'correct', 'undo')
        WINDOW read AS (PARTITION BY dt, comment_id ORDER BY decision.transaction_id, id)
    ) AS d LEFT JOIN decision AS current ON current.id = d.last
"""  # noqa: S608 - our own text

#: The last decision of a kind, if it left its item decided.
_DECIDED = ", ".join(
    f"CASE max(id) FILTER (WHERE kind = '{kind}') OVER read WHEN max(id) FILTER (WHERE kind = "
    f"'{kind}' AND outcome = 'decided') OVER read THEN max(id) FILTER (WHERE kind = '{kind}') "
    "OVER read END"
    for kind in ACTIONABLE_KINDS
)

_MESSAGES = text(
    f"""
    WITH states AS MATERIALIZED (
        SELECT *, lag(state) OVER (PARTITION BY series ORDER BY transaction_id, id) AS before
        FROM ({_STATES.format(_DECIDED)}) AS read
    ), numbered AS (
        SELECT *, row_number() OVER (PARTITION BY series ORDER BY transaction_id, id) AS sequence
        FROM states WHERE state IS DISTINCT FROM before
    ), expected AS (
        SELECT 'decision-' || id AS key, series, sequence, dt, policy_code, jsonb_build_object(
            'schema_version', 1,
            'event', CASE WHEN state IS NULL THEN 'withdrawn' WHEN before IS NULL THEN 'decided'
                ELSE 'changed' END,
            'comment_id', comment_id, 'dt', dt, 'label', label, 'policy_version', policy_version,
            'policy_code', policy_code, 'decision_id', id, 'sequence', sequence, 'decided_at',
            to_char(decided_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')) AS payload
        FROM numbered
    ), nodes AS (
        SELECT version, node->>'code' AS code, node->>'parent' AS parent,
            node->'dsa_category' AS category
        FROM policy_version, jsonb_path_query(content, '$.node[*]') AS node
    ), categories AS (
        SELECT node.code AS policy_code,
            array_agg(coalesce(node.category, parent.category, 'null')) AS possible
        FROM nodes AS node LEFT JOIN nodes AS parent
            ON parent.version = node.version AND parent.code = node.parent
        GROUP BY node.code
    ), sent AS (
        SELECT *, coalesce(payload->'dsa_category', 'null') AS category,
            CASE jsonb_typeof(payload) WHEN 'object' THEN payload - 'dsa_category' END AS facts
        FROM outbox_message WHERE topic = 'decision'
    )
    SELECT coalesce(sent.key, expected.key) AS key, sent.key IS NULL AS missing
    FROM sent FULL JOIN expected USING (key) LEFT JOIN categories USING (policy_code)
    WHERE (sent.series, sent.sequence, sent.dt, sent.facts) IS DISTINCT FROM
            (expected.series, expected.sequence, expected.dt, expected.payload)
        OR coalesce(category <> ALL (possible), category <> 'null')
    ORDER BY key
    """.replace("::", r"\:\:")  # noqa: S608 - our own text
)

_CURSOR = text(
    """
    SELECT FROM outbox_cursor AS cursor
    WHERE topic = 'decision' AND decision_id IS DISTINCT FROM 0
        AND NOT EXISTS (SELECT FROM decision WHERE id = cursor.decision_id
            AND transaction_id = cursor.transaction_id)
    """
)


def message_problems(connection: Connection, _: object) -> Iterator[str]:
    """Yield which messages do not follow from the decisions that have been read, or are missing."""
    if connection.execute(_CURSOR).first() is not None:
        yield "the log was read up to a decision that it does not have"
    for key, missing in connection.execute(_MESSAGES):
        verb = "is missing" if missing else "does not follow from the log"
        yield f"the message {key!r} {verb}"
