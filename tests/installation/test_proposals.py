"""What `modwatch init` proposes for the columns of a source."""

import pytest

from modwatch.common.errors import SettingsError
from modwatch.data.sources.inspection import look
from modwatch.data.sources.values import Vocabulary
from modwatch.installation.proposals import (
    open_decisions,
    propose,
    propose_score,
    require_comments,
    why_no_text,
)

#: Documented columns of exports, with a value each, and the columns that are read.
EXPORTS = {
    "WordPress": (
        {"comment_ID": "{n}", "comment_post_ID": "7", "comment_author": "ada", "comment_karma": "0",
         "comment_date": "2026-03-13 11:{n}:00", "comment_date_gmt": "2026-03-13 10:{n}:00",
         "comment_content": "I liked remark {n} a lot", "comment_approved": "1"},
        {"comment_id": "comment_ID", "text": "comment_content", "created_at": "comment_date_gmt",
         "author_id": "comment_author", "thread_id": "comment_post_ID"},
    ),
    "Discourse": (
        {"id": "{n}", "topic_id": "9", "username": "ada", "created_at": "2026-03-13T10:{n}:00Z",
         "cooked": "<p>I liked remark {n} a lot</p>", "raw": "I liked remark {n} a lot",
         "reads": "3"},
        {"comment_id": "id", "text": "raw", "created_at": "created_at", "author_id": "username",
         "thread_id": "topic_id"},
    ),
    "YouTube": (
        {"commentId": "Ugx{n}", "videoId": "dQw", "textDisplay": "I liked <br>remark {n} a lot",
         "textOriginal": "I liked\nremark {n} a lot", "authorDisplayName": "ada", "likeCount": "1",
         "publishedAt": "2026-03-13T10:{n}:00Z"},
        {"comment_id": "commentId", "text": "textOriginal", "created_at": "publishedAt",
         "author_id": "authorDisplayName", "thread_id": "videoId"},
    ),
    "Zendesk": (
        {"id": "{n}", "author_id": "5", "body": "I liked remark {n} a lot",
         "html_body": "<div>I liked remark {n} a lot</div>", "plain_body": "I like remark {n}",
         "ticket_id": "8", "created_at": "2026-03-13T10:{n}:00Z"},
        {"comment_id": "id", "text": "plain_body", "created_at": "created_at",
         "author_id": "author_id", "thread_id": "ticket_id"},
    ),
    "Reddit": (
        {"id": "k{n}", "body": "I liked remark {n} a lot", "author": "ada", "score": "{n}",
         "created_utc": "17733960{n}", "link_id": "t3_x", "subreddit": "news"},
        {"comment_id": "id", "text": "body", "created_at": "created_utc", "author_id": "author",
         "thread_id": "link_id", "platform": "subreddit"},
    ),
    "Mastodon": (
        {"id": "1160{n}", "created_at": "2026-03-13T10:{n}:00.000Z", "language": "en",
         "content": "<p>I liked remark {n} a lot</p>", "account": "ada@example.org"},
        {"comment_id": "id", "text": "content", "created_at": "created_at",
         "language": "language", "author_id": "account"},
    ),
    "Coral": (
        {"id": "c{n}", "body": "<div>I liked remark {n} a lot</div>", "storyID": "s",
         "status": "{w}", "authorID": "a", "createdAt": "2026-03-13T10:{n}:00.000Z"},
        {"comment_id": "id", "text": "body", "created_at": "createdAt", "author_id": "authorID",
         "decision": "status"},
    ),
    "Facebook": (
        {"comment_id": "12_{n}", "message": "I liked remark {n} a lot", "is_hidden": "false",
         "created_time": "2026-03-13T10:{n}:00+0000", "from_name": "Ada Lovelace"},
        {"comment_id": "comment_id", "text": "message", "created_at": "created_time"},
    ),
    "phpBB": (
        {"post_id": "{n}", "topic_id": "4", "post_time": "17733960{n}", "post_subject": "Re: x",
         "post_text": "I liked remark {n} a lot", "post_visibility": "1"},
        {"comment_id": "post_id", "text": "post_text", "created_at": "post_time",
         "thread_id": "topic_id"},
    ),
    "vBulletin": (
        {"postid": "{n}", "threadid": "3", "userid": "7", "dateline": "17733960{n}", "title": "",
         "pagetext": "I liked remark {n} a lot"},
        {"comment_id": "postid", "text": "pagetext", "created_at": "dateline",
         "author_id": "userid", "thread_id": "threadid"},
    ),
    "Lemmy": (
        {"id": "{n}", "creator_id": "4", "content": "I liked remark {n} a lot", "removed": "f",
         "published": "2026-03-13 10:{n}:00.123456+00", "path": "0.{n}"},
        {"comment_id": "id", "text": "content", "created_at": "published"},
    ),
    "Label Studio": (
        {"annotation_id": "7{n}", "annotator": "1", "created_at": "2026-03-13T10:{n}:00.000000Z",
         "id": "{n}", "lead_time": "3.2", "text": "I liked remark {n} a lot", "toxicity": "Toxic"},
        {"comment_id": "id", "text": "text", "created_at": "created_at"},
    ),
    "Toloka": (
        {"INPUT:text": "I liked remark {n} a lot", "INPUT:id": "{n}", "OUTPUT:result": "toxic",
         "ASSIGNMENT:worker_id": "w1", "ASSIGNMENT:started": "2026-03-13T10:{n}:00.123"},
        {"comment_id": "INPUT:id", "text": "INPUT:text", "created_at": "ASSIGNMENT:started"},
    ),
}  # fmt: skip


def rows(number: int = 30, **columns) -> list[dict]:
    return [{name: make(row) for name, make in columns.items()} for row in range(number)]


def test_columns_are_found_by_name():
    found = rows(
        id=str,
        body=lambda row: f"a remark {row}",
        title=lambda row: f"a much longer title than the remark itself {row}",
        posted=lambda row: f"2026-03-01T10:{row:02}:00Z",
        edited=lambda row: f"2026-03-02T10:{row:02}:00Z",
        lang=lambda _: "en",
        user_id=lambda row: row % 3,
    )
    columns = look(found, list(found[0]))
    assert propose(columns, len(found)) == {
        "comment_id": "id",
        "text": "body",
        "created_at": "posted",
        "language": "lang",
        "author_id": "user_id",
    }


def test_columns_without_telling_names_are_found_by_their_values():
    found = rows(
        key=lambda row: f"k{row}",
        words=lambda row: f"a remark of some length, number {row % 7}",
        at=lambda row: 1_772_359_200 + row,
    )
    columns = look(found, list(found[0]))
    chosen = propose(columns, len(found))
    assert chosen == {"comment_id": "key", "text": "words", "created_at": "at"}


def test_an_id_that_repeats_is_not_proposed():
    found = rows(id=lambda row: row % 3, text=lambda row: f"remark {row}")
    assert "comment_id" not in propose(look(found, ["id", "text"]), len(found))


def test_a_score_is_a_column_of_shares_with_a_telling_name():
    found = rows(score=lambda row: row / 100, votes=lambda row: row / 100)
    assert propose_score(look(found, ["score", "votes"]), len(found)) == "score"
    found[0]["score"] = 1.5
    assert propose_score(look(found, ["score", "votes"]), len(found)) is None


@pytest.mark.parametrize("name", EXPORTS)
def test_columns_of_known_exports_are_found(name):
    row, expected = EXPORTS[name]
    words = {"APPROVED": 4, "REJECTED": 1}
    told = [word for word, times in words.items() for _ in range(times)]
    rows = [
        {key: value.format(n=n, w=told[n % 5]) for key, value in row.items()} for n in range(10, 50)
    ]
    columns = look(rows, [*row])
    assert propose(columns, len(rows)) == expected
    assert propose_score(columns, len(rows)) is None


def moderated(word: str, number: int = 40) -> list[dict]:
    """Return rows with what the platform did, half of them in a word of its own."""
    return rows(
        number,
        id=str,
        text=lambda row: f"a remark of mine {row}",
        decision=lambda row: word if row % 2 else "kept",
    )


@pytest.mark.parametrize(
    ("value", "decided_by", "chosen", "said"),
    [
        (
            (),
            None,
            False,
            ["decision: no meaning is known of entfernt (20)", "DSA files stay empty"],
        ),
        (("entfernt=removed",), None, True, ["No column says who took the decisions"]),
        (("entfernt=toxic",), "person", True, []),
    ],
)
def test_what_is_open_about_decisions_is_told(value, decided_by, chosen, said):
    found = moderated("entfernt")
    columns, vocabulary = look(found, [*found[0]]), Vocabulary.of(value)
    proposed = propose(columns, len(found), vocabulary)
    assert ("decision" in proposed) == chosen
    lines = [*open_decisions(columns, proposed, vocabulary, decided_by=decided_by)]
    assert len(lines) == len(said)
    assert all(word in line for word, line in zip(said, lines, strict=True))


def test_the_words_of_a_label_are_asked_for():
    found = rows(
        id=str, text=lambda n: f"a remark of mine {n}", label=lambda n: ["hass", "ok"][n % 2]
    )
    columns, chosen = (
        look(found, [*found[0]]),
        {"label": "label", "decision": "d", "decided_by": "w"},
    )
    (line,) = open_decisions(columns, chosen, Vocabulary.of(["ok=other"]))
    assert line.startswith(
        "label: no meaning is known of hass (15); add --value WORD=toxic|other for"
    )


def test_a_word_that_may_be_a_text_is_not_printed():
    found = moderated("you are a liar")
    columns = look(found, [*found[0]])
    assert "liar" not in " ".join(open_decisions(columns, {}, Vocabulary.of()))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            {"text_1": "you are quite wrong {n}", "text_2": "and I can prove it"},
            "text_1, text_2 look",
        ),
        ({"fields": '{{"text": "you are quite wrong {n}"}}'}, "fields hold lists or objects"),
        ({"author": "Ada King {n}", "town": "Ghent"}, ""),
    ],
)
def test_what_is_no_whole_text_is_not_proposed(text, why):
    found = rows(
        id=str, **{key: lambda n, value=value: value.format(n=n) for key, value in text.items()}
    )
    columns = look(found, [*found[0]])
    assert "text" not in propose(columns, len(found))
    assert why in why_no_text(columns)
    assert bool(why) == bool(why_no_text(columns))


def test_statements_of_reasons_are_no_comments():
    names = ["uuid", "decision_ground", "decision_facts", "automated_decision", "created_at"]
    with pytest.raises(SettingsError, match="Join them to your comments"):
        require_comments(names)
    require_comments(names[:2])
