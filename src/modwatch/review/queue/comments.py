"""Comments of files, converted and checked as those of the daily job."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from modwatch.common.columns import Column, shown
from modwatch.common.text import id_problem, text_problem
from modwatch.data.sources.landing import converted
from modwatch.data.sources.values import LANGUAGE, text_of
from modwatch.review.queue.items import content_columns

#: Why records of files are refused.
REASONS: Mapping[str, str] = {
    "malformed_record": "a value, or the whole record, has another form than expected",
    "unclosed_quote": "a quotation mark is not closed",
    "missing_id": "the id is missing or has no visible character",
    "long_id": "the id is too long",
    "rounded_id": "the id was rounded by a spreadsheet: export the ids as text",
    "blank_text": "the text is missing or has no visible character",
    "long_text": "a text is too long",
    "nul_byte": "a text contains NUL",
    "undecodable_text": "a text is not in the encoding of the file, or has a lone surrogate",
    "malformed_language": "the language is not a BCP 47 tag, such as de or pt-BR",
    "missing_label": "there is no label",
    "unreadable_label": "the label is neither 1 nor 0",
    "missing_source": "there is no source, which names where the label comes from",
    "missing_day": "there is no day: write dt, or name it with --day",
    "unreadable_day": "dt is not in the format of ISO 8601",
    "impossible_day": "the day has not begun, or is before MODWATCH_FIRST_DAY",
    "malformed_annotation": "an annotation has no readable person (a number), choice "
    "(Toxic or Not toxic), duration or time",
    "future_annotation": "an annotation is of the future",
    "contradictory_labels": "a person, or the ground truth, has both labels",
    "different_copy": "an earlier record has the same comment with other content",
    "other_text": "the item of this comment and day has another text",
    "other_label": "another label of the same person was imported before",
    "other_gold": "the comment is already gold with another text or label: retire it first",
}


def comment_of(
    record: Mapping[str, object], *more: str, own: Sequence[Column] = ()
) -> tuple[dict[str, Any], str | None]:
    r"""Return what moderators see of a comment by column, with the texts of `more`, and a problem.

    It is the first broken rule, a key of `REASONS`. Numbers become text, and NaN or an empty text
    None; the columns of the platform's `own` have their types.

    >>> comment_of({"comment_id": 17.0, "text": "\u200b"})[1]
    'blank_text'
    >>> comment_of({"comment_id": 17.0, "text": "fine", "language": float("nan")})[0]["language"]
    """
    names = (*content_columns(), *more)
    typed = {c.name: converted(c.type, record.get(c.name)) for c in shown(own) if c in own}
    read = {name: text_of(record.get(name)) for name in names}
    texts = {name: text or None for name, (text, _) in read.items()}
    problems = [
        *(problem for _, problem in read.values()),
        *("malformed_record" if problem else None for _, problem in typed.values()),
        id_problem(texts["comment_id"]),
        text_problem(texts["text"]),
        # The others may be blank.
        *(text_problem(f"{texts[name] or ''}.") for name in names[2:]),
        None if re.fullmatch(LANGUAGE, texts["language"] or "") else "malformed_language",
    ]
    values = {name: value for name, (value, _) in typed.items()}
    return texts | values, next(filter(None, problems), None)
