import pytest

from modwatch.review.queue.comments import REASONS, comment_of


def test_other_texts_than_the_comment_may_be_blank():
    texts, problem = comment_of({"comment_id": "c1", "text": "fine", "parent_text": "\u200b"})
    assert (texts["parent_text"], texts["platform"], problem) == ("\u200b", None, None)


@pytest.mark.parametrize("column", ["comment_id", "text", "parent_text", "platform", "source"])
def test_a_text_that_cannot_be_stored_is_refused_in_any_column(column):
    known = {"comment_id": "c1", "text": "fine"}
    for text, problem in (("a\0", "nul_byte"), ("a\ud800", "undecodable_text")):
        assert comment_of(known | {column: text}, "source")[1] == problem
        assert problem in REASONS
