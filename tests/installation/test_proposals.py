"""What `modwatch init` proposes for the columns of a source."""

import pytest

from modwatch.data.sources.inspection import look
from modwatch.installation.proposals import propose, propose_score

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
    rows = [{key: value.format(n=n) for key, value in row.items()} for n in range(10, 50)]
    columns = look(rows, [*row])
    assert propose(columns, len(rows)) == expected
    assert propose_score(columns, len(rows)) is None
