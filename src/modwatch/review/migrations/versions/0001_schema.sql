-- The schema of revision 0001; `modwatch.review.tables` documents the columns.

CREATE TABLE moderator (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pseudonym text NOT NULL UNIQUE,
    role text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    password_hash text,
    oidc_subject text UNIQUE,
    disabled_at timestamptz,
    preferences jsonb NOT NULL DEFAULT '{}',
    -- A page or a task that reads other values would fail.
    CONSTRAINT moderator_preferences_check CHECK (jsonb_typeof(preferences) = 'object'
        AND jsonb_typeof(coalesce(preferences -> 'opt_outs', '[]')) IN ('array', 'null')),
    CONSTRAINT moderator_created_at_check
        CHECK (created_at BETWEEN '0001-01-02Z' AND '9999-12-30Z'),
    CONSTRAINT moderator_disabled_at_check
        CHECK (disabled_at BETWEEN '0001-01-02Z' AND '9999-12-30Z'),
    CONSTRAINT moderator_role_check CHECK (role IN ('moderator', 'lead', 'auditor', 'ops', 'admin'))
);

CREATE TABLE moderator_group (
    moderator_id bigint PRIMARY KEY REFERENCES moderator,
    group_name text NOT NULL,
    counted_as text
);

CREATE TABLE moderator_queue (
    moderator_id bigint NOT NULL REFERENCES moderator,
    queue text NOT NULL,
    PRIMARY KEY (moderator_id, queue)
);

CREATE TABLE access_token (
    digest bytea PRIMARY KEY,
    id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    name text,
    moderator_id bigint NOT NULL REFERENCES moderator,
    purpose text NOT NULL,
    scopes text[],
    opened_with bytea REFERENCES access_token ON DELETE SET NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT access_token_purpose_check CHECK (purpose IN ('api', 'session'))
);
CREATE INDEX access_token_moderator_id_idx ON access_token (moderator_id);
CREATE INDEX access_token_opened_with_idx ON access_token (opened_with);

CREATE TABLE login_attempt (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    origin bytea NOT NULL,
    failed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX login_attempt_failed_at_idx ON login_attempt (failed_at);
CREATE INDEX login_attempt_origin_idx ON login_attempt (origin, failed_at);

CREATE TABLE known_origin (
    origin bytea PRIMARY KEY,
    seen_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX known_origin_seen_at_idx ON known_origin (seen_at);

CREATE TABLE second_factor (
    moderator_id bigint PRIMARY KEY REFERENCES moderator,
    secret text NOT NULL,
    confirmed_at timestamptz,
    last_step bigint NOT NULL DEFAULT 0,
    recovery bytea[] NOT NULL DEFAULT '{}',
    pending_digest bytea UNIQUE,
    pending_until timestamptz
);

CREATE TABLE event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    actor_id bigint REFERENCES moderator,
    subject_id bigint REFERENCES moderator,
    action text NOT NULL,
    details jsonb NOT NULL DEFAULT '{}'::jsonb,
    happened_at timestamptz NOT NULL DEFAULT now(),
    position bigint NOT NULL UNIQUE,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    -- Python has no other times, so a page with one would fail.
    CONSTRAINT event_happened_at_check CHECK (happened_at BETWEEN '0001-01-02Z' AND '9999-12-30Z'),
    -- Nor does Python hold deeper documents, or numbers of thousands of digits.
    CONSTRAINT event_details_check CHECK (jsonb_typeof(details) = 'object'
        AND NOT details @? '$.**{20}'
        AND NOT details @? '$.** ? (@.type() == "number" && (@ > 1e300 || @ < -1e300))')
);
CREATE INDEX event_subject_id_idx ON event (subject_id);

CREATE TABLE event_chain (
    id smallint DEFAULT 1 PRIMARY KEY,
    length bigint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT event_chain_id_check CHECK (id = 1)
);

CREATE TABLE bulk_close (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    moderator_id bigint NOT NULL REFERENCES moderator,
    criteria jsonb NOT NULL,
    reason text NOT NULL,
    matched bigint NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    cancelled_at timestamptz,
    cancelled_by bigint REFERENCES moderator
);

CREATE TABLE review_item (
    -- 52 random bits: whoever is served an item learns nothing from its number, and JSON keeps it.
    id bigint PRIMARY KEY DEFAULT ('x' || left(gen_random_uuid()::text, 8)
        || right(gen_random_uuid()::text, 5))::bit(52)::bigint,
    dt date NOT NULL,
    comment_id text NOT NULL,
    kind text NOT NULL,
    text text NOT NULL,
    parent_text text,
    text_salt bytea DEFAULT uuid_send(gen_random_uuid()),
    shown jsonb NOT NULL DEFAULT '{}',
    queue text NOT NULL DEFAULT 'general',
    reason text NOT NULL,
    stratum integer NOT NULL,
    inclusion_probability double precision NOT NULL,
    rank bigint NOT NULL,
    review_score double precision NOT NULL,
    prob real NOT NULL,
    uncertainty real NOT NULL,
    model_version text NOT NULL,
    queued_at timestamptz NOT NULL DEFAULT now(),
    serve_by timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz NOT NULL DEFAULT now(),
    severe_due_at timestamptz,
    round smallint NOT NULL DEFAULT 1,
    confirms smallint[],
    confirmation_probability_0 double precision,
    confirmation_probability_1 double precision,
    first_label smallint,
    labels_wanted smallint NOT NULL DEFAULT 1,
    excluded bigint[] NOT NULL DEFAULT '{}',
    reserved_for bigint REFERENCES moderator,
    serve_after bigint,
    audit text,
    status text NOT NULL DEFAULT 'waiting',
    lease_digest bytea,
    leased_by bigint REFERENCES moderator,
    leased_until timestamptz,
    claimed_at timestamptz,
    bulk_close_id bigint REFERENCES bulk_close,
    -- From a random number on: a version does not show how often the item was skipped.
    version integer NOT NULL DEFAULT (random() * 1000000000)::integer + 1,
    CONSTRAINT review_item_dt_comment_id_kind_round_reserved_for_audit_key UNIQUE NULLS NOT DISTINCT
        (dt, comment_id, kind, round, reserved_for, audit),
    CONSTRAINT review_item_dt_check CHECK (dt BETWEEN '0001-01-02' AND '9999-12-30'),
    CONSTRAINT review_item_shown_check CHECK (jsonb_typeof(shown) = 'object'),
    CONSTRAINT review_item_kind_check CHECK (kind IN ('review', 'confirmation', 'retest', 'gold',
        'audit', 'imported')),
    CONSTRAINT review_item_status_check CHECK (status IN ('waiting', 'blocked', 'escalated',
        'decided', 'withdrawn', 'closed')),
    CONSTRAINT review_item_round_check CHECK (CASE WHEN kind = 'confirmation' THEN round IN (2, 3)
        AND confirms <@ '{0,1}' AND confirms <> '{}' AND confirms IS NOT NULL
        AND confirmation_probability_0 BETWEEN 0 AND 1 AND confirmation_probability_0 IS NOT NULL
        AND confirmation_probability_1 BETWEEN 0 AND 1 AND confirmation_probability_1 IS NOT NULL
        ELSE round = 1 END),
    CONSTRAINT review_item_first_label_check CHECK (first_label IN (0, 1)),
    CONSTRAINT review_item_inclusion_probability_check CHECK (inclusion_probability > 0 AND
        inclusion_probability <= 1),
    CONSTRAINT review_item_labels_wanted_check CHECK (labels_wanted BETWEEN 1 AND 9)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
-- A lease changes no indexed column, so it is a heap-only update, and the indexes that serve the
-- next item do not grow with every lease.
CREATE INDEX review_item_audit_idx ON review_item (audit) WHERE audit IS NOT NULL;
CREATE INDEX review_item_bulk_close_id_idx ON review_item (bulk_close_id) WHERE bulk_close_id IS NOT
    NULL;
CREATE INDEX review_item_comment_id_idx ON review_item (comment_id);
CREATE INDEX review_item_escalated_idx ON review_item (queue, severe_due_at, serve_by, id) WHERE
    status = 'escalated';
CREATE INDEX review_item_lane_idx ON review_item (queue, reason, serve_by, id) WHERE status =
    'waiting' AND reserved_for IS NULL;
CREATE INDEX review_item_reserved_idx ON review_item (reserved_for, serve_by, id) WHERE status =
    'waiting' AND reserved_for IS NOT NULL;
CREATE INDEX review_item_status_idx ON review_item (status, dt);

CREATE TABLE lane (
    queue text NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (queue, reason)
);

CREATE TABLE decision (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item_id bigint NOT NULL REFERENCES review_item,
    dt date NOT NULL,
    comment_id text NOT NULL,
    kind text NOT NULL,
    item_version integer NOT NULL,
    moderator_id bigint NOT NULL REFERENCES moderator,
    action text NOT NULL,
    label smallint,
    policy_version text,
    policy_code text,
    reason text,
    note text,
    note_salt bytea,
    note_commitment bytea,
    seconds double precision,
    idempotency_key text NOT NULL,
    refers_to bigint REFERENCES decision,
    decided_at timestamptz NOT NULL,
    text_commitment bytea NOT NULL,
    item_digest bytea NOT NULL,
    outcome text NOT NULL,
    position bigint NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    UNIQUE (moderator_id, idempotency_key),
    UNIQUE (moderator_id, position),
    CONSTRAINT decision_action_check CHECK (action IN ('label', 'adjudicate', 'correct', 'skip',
        'escalate', 'undo', 'close', 'reopen')),
    CONSTRAINT decision_label_check CHECK ((action IN ('label', 'adjudicate', 'correct')) = (label
        IS NOT NULL)),
    CONSTRAINT decision_seconds_check CHECK (seconds >= 0),
    CONSTRAINT decision_dt_check CHECK (dt BETWEEN '0001-01-02' AND '9999-12-30'),
    CONSTRAINT decision_decided_at_check CHECK (decided_at BETWEEN '0001-01-02Z' AND '9999-12-30Z')
);
-- Rows are stored in the order of time, so this index stays tiny and is cheap to maintain.
CREATE INDEX decision_decided_at_idx ON decision USING brin (decided_at) WITH (pages_per_range = 16,
    autosummarize = on);
CREATE INDEX decision_dt_idx ON decision (dt);
CREATE INDEX decision_item_id_idx ON decision (item_id);
CREATE INDEX decision_refers_to_idx ON decision (refers_to) WHERE refers_to IS NOT NULL;
CREATE INDEX decision_transaction_id_idx ON decision (transaction_id, id);

CREATE TABLE decision_chain (
    moderator_id bigint PRIMARY KEY REFERENCES moderator,
    length bigint NOT NULL,
    hash bytea NOT NULL
);

CREATE TABLE gold_comment (
    comment_id text PRIMARY KEY,
    text text NOT NULL,
    salt bytea DEFAULT uuid_send(gen_random_uuid()),
    parent_text text,
    shown jsonb NOT NULL DEFAULT '{}',
    label smallint NOT NULL,
    policy_code text,
    source text NOT NULL,
    added_at timestamptz NOT NULL DEFAULT now(),
    retired_at timestamptz,
    CONSTRAINT gold_comment_shown_check CHECK (jsonb_typeof(shown) = 'object'),
    CONSTRAINT gold_comment_label_check CHECK (label IN (0, 1))
);

CREATE TABLE policy_version (
    version text PRIMARY KEY,
    digest text NOT NULL,
    content jsonb NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE outbox_message (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL UNIQUE,
    topic text NOT NULL,
    series text NOT NULL,
    sequence integer NOT NULL,
    dt date NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (topic, series, sequence)
);

CREATE TABLE outbox_delivery (
    message_id bigint NOT NULL REFERENCES outbox_message ON DELETE CASCADE,
    channel text NOT NULL,
    delivered_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    dead_at timestamptz,
    last_problem text,
    PRIMARY KEY (message_id, channel)
);
CREATE INDEX outbox_delivery_dead_idx ON outbox_delivery (channel, message_id) WHERE dead_at IS NOT
    NULL;
CREATE INDEX outbox_delivery_pending_idx ON outbox_delivery (channel, message_id) WHERE delivered_at
    IS NULL AND dead_at IS NULL;

CREATE TABLE outbox_cursor (
    topic text PRIMARY KEY,
    transaction_id xid8 NOT NULL,
    decision_id bigint NOT NULL
);

CREATE TABLE incident (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    name text NOT NULL,
    severity text NOT NULL,
    since date NOT NULL,
    opened date NOT NULL,
    members jsonb NOT NULL,
    rule text NOT NULL,
    subject text NOT NULL,
    notified_on date NOT NULL,
    sequence integer NOT NULL,
    headline text NOT NULL,
    first_headline text NOT NULL,
    text text NOT NULL,
    links jsonb NOT NULL,
    segment text NOT NULL,
    evaluated date,
    newest_headline text,
    newest_value text,
    ended date,
    outcome text,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT incident_severity_check CHECK (severity IN ('info', 'warning', 'critical')),
    -- Each has two days, written as ISO 8601.
    CONSTRAINT incident_members_check CHECK (jsonb_typeof(members) = 'object'
        AND NOT jsonb_path_exists(members, 'strict $.* ? (
            !(@.since.datetime("YYYY-MM-DD") >= "0001-01-02".datetime("YYYY-MM-DD")
                && @.opened.datetime("YYYY-MM-DD") >= "0001-01-02".datetime("YYYY-MM-DD")
                && @.since like_regex "^.{10}$" && @.opened like_regex "^.{10}$")
            || (@.since.datetime("YYYY-MM-DD") >= @.opened.datetime("YYYY-MM-DD")) is unknown)')),
    CONSTRAINT incident_links_check CHECK (jsonb_typeof(links) = 'object'),
    CONSTRAINT incident_days_check CHECK (isfinite(since) AND isfinite(opened)
        AND isfinite(notified_on)),
    CONSTRAINT incident_kind_check
        CHECK (kind IN ('incident', 'annotator_incident', 'failure', 'heartbeat')),
    CONSTRAINT incident_outcome_check CHECK (outcome IN ('recovered', 'withdrawn', 'accepted')),
    CONSTRAINT incident_ended_check CHECK ((ended IS NULL) = (outcome IS NULL))
);
CREATE UNIQUE INDEX incident_active_idx ON incident (kind, name) WHERE ended IS NULL;
CREATE INDEX incident_name_idx ON incident (kind, name, id);

CREATE TABLE incident_event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    incident_id bigint NOT NULL REFERENCES incident,
    event text NOT NULL,
    title text,
    person text,
    note text,
    until date,
    day date,
    level_since date,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT incident_event_author_check CHECK ((title IS NULL) = (person IS NOT NULL))
);
CREATE INDEX incident_event_incident_id_idx ON incident_event (incident_id, id);

-- The statistics of the planner would quote texts.
ALTER TABLE review_item ALTER text SET STATISTICS 0, ALTER parent_text SET STATISTICS 0,
    ALTER shown SET STATISTICS 0;
ALTER TABLE decision ALTER note SET STATISTICS 0;
ALTER TABLE gold_comment ALTER text SET STATISTICS 0, ALTER parent_text SET STATISTICS 0,
    ALTER shown SET STATISTICS 0;

-- Decisions and events are appended, never changed, whoever asks. A note can be erased with its salt;
-- the log then needs an event that says so.
CREATE FUNCTION decision_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.note IS NULL AND NEW.note_salt IS NULL
            AND to_jsonb(NEW) - '{note,note_salt}'::text[] = to_jsonb(OLD) - '{note,note_salt}'::text[]
        THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'the decision log is append-only; append a compensating decision'
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER decision_append_only_rows BEFORE UPDATE OR DELETE ON decision
    FOR EACH ROW EXECUTE FUNCTION decision_is_append_only();
CREATE TRIGGER decision_append_only_table BEFORE TRUNCATE ON decision
    FOR EACH STATEMENT EXECUTE FUNCTION decision_is_append_only();

CREATE FUNCTION event_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events are append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER event_append_only_rows BEFORE UPDATE OR DELETE ON event
    FOR EACH ROW EXECUTE FUNCTION event_is_append_only();
CREATE TRIGGER event_append_only_table BEFORE TRUNCATE ON event
    FOR EACH STATEMENT EXECUTE FUNCTION event_is_append_only();

-- The end of the empty chain of events.
INSERT INTO event_chain (length, hash) VALUES (0, decode(repeat('00', 32), 'hex'));

-- The application erases notes, and may not change decisions otherwise, or lock them.
CREATE FUNCTION erase_notes(items bigint[]) RETURNS SETOF bigint LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp AS $$
    UPDATE decision SET note = NULL, note_salt = NULL
    WHERE item_id = ANY (items) AND note IS NOT NULL RETURNING id
$$;

-- Only the owner of a table may analyze it.
CREATE FUNCTION analyze_outbox() RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    ANALYZE outbox_message, outbox_delivery;
END $$;
