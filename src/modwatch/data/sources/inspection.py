"""Looks at the first rows of a source, and describes them; no value is ever shown.

A column is described by its name, kind and counts, and times by an invented example.
"""

import datetime as dt
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from modwatch.common.days import can_have_comments
from modwatch.common.errors import SourceError
from modwatch.data.sources.timestamps import (
    DAYS,
    TIME_NAMES,
    epoch_scale,
    is_eight_digit_date,
    read_moment,
)
from modwatch.data.sources.values import USUAL, number_of, plain, probability_of, text_of

#: Names under which sources have the columns of Modwatch, the clearest first, without case, blanks
#: and punctuation; also those of WordPress, Discourse, Reddit, YouTube, Zendesk and Mastodon.
NAMES: Mapping[str, Sequence[str]] = {
    "comment_id": ("commentid", "id", "uuid", "postid", "messageid", "statusid", "pk"),
    "text": ("text", "commenttext", "commentcontent", "textoriginal", "plainbody", "plaintext",
             "rawmessage", "raw", "comment", "commentbody", "body", "content", "message", "post",
             "comments", "fulltext", "textdisplay", "htmlbody", "cooked"),
    "created_at": ("createdat", "created", "timestamp", "createdutc", "commentdategmt", "postedat",
                   "posted", "publishedat", "createdate", "commentdate", "date", "datetime", "time",
                   "ts"),
    "language": ("language", "lang", "locale"),
    "author_id": ("authorid", "userid", "author", "user", "accountid", "username", "authorname",
                  "commentauthor", "authorchannelid", "authordisplayname", "account"),
    "thread_id": ("threadid", "thread", "topicid", "articleid", "conversationid", "linkid",
                  "commentpostid", "videoid", "ticketid", "discussionid", "parentid"),
    "parent_text": ("parenttext",),
    "platform": ("platform", "site", "forum", "subreddit"),
    "views": ("views", "viewcount"),
    "decision": ("decision", "moderationdecision", "moderationstatus", "commentapproved",
                 "removedbycategory", "moderationaction", "action"),
    "decided_by": ("decidedby", "decisionby", "moderatedby", "automateddecision"),
    "decided_at": ("decidedat", "decisiondate", "moderatedat", "removedat"),
}  # fmt: skip
#: Names of a column that may be a model's probability.
SCORE_NAMES = ("prob", "probability", "toxicity", "score", "toxicityscore", "modelscore",
               "prediction")  # fmt: skip

#: Share of the values of a column that must be of its kind.
MOST = 0.9
#: So many times as many years or months make an order of day, month and year improbable.
_MANY = 3
#: Values of a column whose words are looked at, at most.
_WORDS = 20
#: Longest time in text, in characters.
_LONGEST_TIME = 80
#: The moment of all examples.
_EXAMPLE = dt.datetime(2026, 3, 21, 12, 30, 45, tzinfo=dt.UTC)

#: A time of day with its zone, and a format that has its directives but not yet those of its day.
_CLOCK = re.compile(
    r"(?<!\d)\d{1,2}:\d{2}(?P<seconds>:\d{2}(?P<fraction>\.\d{1,9})?)?(?P<half> ?[AaPp][Mm])?"
    r"(?P<blank> ?)(?P<name>GMT|UTC)?(?P<offset>[+-]\d{2}:?\d{2})?"
)
_FORM = re.compile(r"(%[a-zA-Z]|GMT|UTC|[\dT ,./:\[\]-])+")

#: What differs between ids of one shape: digits, or hexadecimal ones.
_DIGITS = re.compile(r"[0-9a-fA-F]*\d[0-9a-fA-F]*")
#: Without a header, the names are a comment: only one word is shown, with a unit in brackets.
SHOWN = re.compile(r"(?=.{1,40}$)[\w.:/()°%#-]+( \(\W?\w{0,2}\))?")
#: Names of columns in lower case, letters and digits only.
_KNOWN = {
    name.replace("_", "")
    for name in (*NAMES, *chain(*NAMES.values()), *SCORE_NAMES, "label", "groups", "flagged")
}
#: Whether a text may be a list or an object, as in JSON or Python.
_NESTED = re.compile(r"\s*(\[[\[{\"'\d]|\{[\"'])").match
#: A tag of a text that is rendered.
_TAG = re.compile(r"</?(p|br|a|div|span|blockquote)\b[^<>]*>")


@dataclass(frozen=True, kw_only=True)
class TimeFormat:
    """How the times of a column are written."""

    #: Format of strptime; None: ISO 8601 or a number, which need none.
    written: str | None
    #: Whether the times name their zone.
    has_zone: bool
    #: A made-up time, written in this way.
    example: str


@dataclass(frozen=True, kw_only=True)
class Column:
    """What the first rows show about a column."""

    name: str
    #: `time`, `number`, `text` or `empty`.
    kind: str
    filled: int
    distinct: int
    #: Mean length of the values as text, in characters.
    mean_length: float
    #: Of a column of numbers, the smallest and the largest.
    ends: tuple[float, float] | None
    #: Whether most of its texts have tags of HTML, are of several words (or not of ASCII), and hold
    #: a list or an object.
    is_html: bool
    is_prose: bool
    is_nested: bool
    #: How often each of its values occurs, if they are few.
    words: Mapping[str, int]
    #: Ways in which all its times can be read: several if the order of day, month and year is open.
    formats: Sequence[TimeFormat]

    @property
    def is_share(self) -> bool:
        """Whether all values are numbers in [0, 1]."""
        return self.ends is not None and self.ends[0] >= 0 and self.ends[1] <= 1


def look(
    rows: Sequence[Mapping[str, object]], names: Sequence[str], written: str | None = None
) -> list[Column]:
    """Return what the rows show about each of the columns `names`.

    `written` is the format of the times, as MODWATCH_SOURCE__TIMESTAMP_FORMAT; None: it is open.
    """
    return [_column(name, [row.get(name) for row in rows], written) for name in names]


def describe(columns: Sequence[Column], rows: int) -> str:
    """Return the columns as a table: names, kinds and counts, and no value.

    >>> print(describe(look([{"id": 1, "t": "2026-03-01"}], ["id", "t"]), 1))
    column  kind    filled  distinct
    id      number  1 of 1  1
    t       time    1 of 1  1         2026-03-21-like
    """
    table = [("column", "kind", "filled", "distinct", "")]
    for column, shown in zip(
        columns, shown_names([column.name for column in columns]), strict=True
    ):
        like = " or ".join(f"{form.example}-like" for form in column.formats)
        table.append((shown, column.kind, f"{column.filled} of {rows}", f"{column.distinct}", like))
    widths = [max(len(row[column]) for row in table) for column in range(5)]
    lines = ("  ".join(f"{cell:{w}}" for cell, w in zip(row, widths, strict=True)) for row in table)
    return "\n".join(line.rstrip() for line in lines)


def usual_name(name: str) -> str:
    """Return the name of a column as it is compared, without the object that it is a part of.

    >>> usual_name("Created At"), usual_name("createdAt"), usual_name("_id"), usual_name("INPUT:id")
    ('createdat', 'createdat', 'id', 'id')
    """
    return re.sub(r"[\W_]", "", re.split(r"(?<=\w)[.:](?=\w)", name.lower())[-1])


def time_formats(values: Collection[object]) -> list[TimeFormat]:
    """Return every way in which (nearly) all values can be read as times; none: they are no times.

    >>> [form.written for form in time_formats(["01/02/2026 10:00", "03/04/2026 11:00"])]
    ['%d/%m/%Y %H:%M', '%m/%d/%Y %H:%M']
    >>> [form.written for form in time_formats(["31/03/2026 10:00", "03/04/2026 11:00"])]
    ['%d/%m/%Y %H:%M']
    >>> [(form.has_zone, form.example) for form in time_formats(["2026-03-01T10:00:00Z"])]
    [(True, '2026-03-21T12:30:45Z')]
    """
    given = [value for value in values if value not in (None, "")]
    if not given:
        return []
    iso = _readable(given, None)
    if iso is not None:
        return [iso]
    candidates = {form for value in given for form in _candidates(str(value).strip())}
    read = {form: _days(given, form) for form in sorted(candidates)}
    formats = (_readable(given, form) for form in _plausible(read, len(given)))
    return [form for form in formats if form is not None]


def _days(values: Collection[object], written: str) -> list[dt.date]:
    days = (read_moment(str(value), None, written).day for value in values)
    return [day for day in days if day is not None]


def _plausible(read: Mapping[str, Sequence[dt.date]], number: int) -> list[str]:
    """Return the formats that may be right, by the days that they read of `number` values.

    One that reads days to come, or of many more years than another does, is not. One value that
    only one order can read decides, unless another order reads far fewer months.
    """
    read = {form: days for form, days in read.items() if len(days) >= MOST * number}
    years = {form: len({day.year for day in days}) for form, days in read.items()}
    begun = {f: sum(map(can_have_comments, days)) >= MOST * number for f, days in read.items()}
    right = {
        form: days
        for form, days in read.items()
        if years[form] <= _MANY * min(years.values()) and (begun[form] or not any(begun.values()))
    }
    most = max(map(len, right.values()), default=0)
    months = {form: len({(day.year, day.month) for day in days}) for form, days in right.items()}
    wide = max((months[form] for form, days in right.items() if len(days) == most), default=0)
    return [f for f, days in right.items() if len(days) == most or _MANY * months[f] < wide]


def require_header(
    names: Sequence[str], where: str, rows: Sequence[Mapping[str, object]] = ()
) -> None:
    """Raise SourceError when the names of columns are rather the first row of the data.

    A name that is a time is one of a row. So is a line without any usual name that looks like the
    rows below it.
    """
    if not names:
        raise SourceError(f"{where} has no columns; add a first line with a name for each")
    if len(names) == 1 and names[0].startswith("#"):
        raise SourceError(
            f"the first line of {where} is a remark and names no columns; delete the lines above "
            "the names, or export the data as CSV"
        )
    times = [n for n, name in enumerate(names, start=1) if _column(name, [name]).kind == "time"]
    if times or (rows and _is_row(names, rows)):
        why = f"its field {times[0]} is a time" if times else "it looks like the lines below it"
        raise SourceError(
            f"the first line of {where} does not name its columns: {why}; add a first line with a "
            "name for each column, such as id,text"
        )


def _is_row(names: Sequence[str], rows: Sequence[Mapping[str, object]]) -> bool:
    """Return whether names are like their values: an id of the same shape, or several words.

    A name without a digit over values that have one is a name.
    """
    if any(map(_is_known, names)):
        return False
    alike = False
    for name in names:
        values = [text_of(row.get(name))[0] or "" for row in rows]
        if _mostly(re.search(r"\d", value) for value in values) and not re.search(r"\d", name):
            return False
        shape = _DIGITS.sub("0", name)
        alike |= shape != name and _mostly(_DIGITS.sub("0", value) == shape for value in values)
        alike |= len(name.split()) > 1 and _mostly(len(value.split()) > 1 for value in values)
    return alike


def _mostly(facts: Iterable[object]) -> bool:
    found = [bool(fact) for fact in facts]
    return 2 * sum(found) > len(found)


def _column(name: str, values: Sequence[object], written: str | None = None) -> Column:
    given = [value for value in map(plain, values) if not USUAL.is_no_vote(value)]
    texts = [str(text_of(value)[0]) for value in given]
    are_dates = any(isinstance(value, dt.date) for value in given)
    numbers = [number for value in given if (number := probability_of(value)[0]) is not None]
    # Ids of Twitter and Discord are numbers as large as nanoseconds since 1970.
    are_moments = _are_epochs(numbers) or MOST * len(given) <= sum(map(is_eight_digit_date, texts))
    may_be_times = len(numbers) < len(given) or (are_moments and not name.lower().endswith("id"))
    formats = time_formats(given) if may_be_times else []
    if written is not None:
        form = _readable(given, written) if given and not are_dates else None
        formats = [] if form is None else [form]
    kind = "time" if formats else "text" if len(numbers) < len(given) else "number"
    return Column(
        name=name,
        kind=kind if given else "empty",
        filled=len(given),
        distinct=len(set(texts)),
        words=Counter(texts) if len(set(texts)) <= _WORDS else {},
        mean_length=sum(map(len, texts)) / max(len(texts), 1),
        is_html=_mostly(_TAG.search(text) for text in texts),
        is_prose=_mostly(len(text.split()) > 2 or not text.isascii() for text in texts),
        is_nested=_mostly(isinstance(value, list | dict) or _NESTED(str(value)) for value in given),
        ends=(min(numbers), max(numbers)) if kind == "number" and numbers else None,
        formats=formats,
    )


def _are_epochs(numbers: Sequence[float]) -> bool:
    """Return whether nearly all numbers look like times since 1970, of the years 1995 to 2065."""
    looks = [8e8 <= abs(number) / epoch_scale(number) < 3e9 for number in numbers]
    return sum(looks) >= MOST * len(looks)


def _readable(values: Sequence[object], written: str | None) -> TimeFormat | None:
    """Return the format if (nearly) all values are times by it."""
    moments = [read_moment(value, None, written) for value in values]
    if sum(moment.day is not None for moment in moments) < MOST * len(values):
        return None
    has_zone = all(m.created_at is not None for m in moments if m.day is not None)
    return TimeFormat(
        written=written, has_zone=has_zone, example=_example(values[0], written, has_zone)
    )


def _example(value: object, written: str | None, has_zone: bool) -> str:
    """Return a made-up time, written like `value`."""
    if written is not None:
        return _EXAMPLE.strftime(written)
    number = number_of(value)[0]
    if number is not None and is_eight_digit_date(text_of(value)[0]):
        return f"{_EXAMPLE:%Y%m%d}"
    if number is not None:
        digits = len(str(int(number)))
        return str(int(_EXAMPLE.timestamp() * 10 ** max(0, digits - 10)))
    text = str(value).strip()
    if len(text) <= 10:
        return _EXAMPLE.date().isoformat()
    zone = next((zone for zone in ("Z", " UTC") if text.endswith(zone)), "+00:00" * has_zone)
    return f"{_EXAMPLE:%Y-%m-%d}{text[10]}{_EXAMPLE:%H:%M:%S}{zone}"


def _candidates(text: str) -> list[str]:
    """Return the formats by which a time that is not ISO 8601 can be read."""
    form = _CLOCK.sub(_clock, re.sub(r" \([^()]*\)$", "", text), count=1)
    form = TIME_NAMES.sub(lambda name: "%a" if name[1].lower() in DAYS else "%b", form)
    if len(text) > _LONGEST_TIME or not _FORM.fullmatch(form):
        return []
    sizes = [len(number) for number in re.findall(r"\d+", form)]
    orders = []
    if "%b" in form and len(sizes) == 2 and 4 in sizes:
        orders = [["%Y" if size == 4 else "%d" for size in sizes]]
    elif len(sizes) == 3 and re.search(r"\d([./-])\d+\1\d", form):
        year = "%Y" if 4 in sizes else "%y"
        orders = [["%d", "%m", year], ["%m", "%d", year], ["%y", "%m", "%d"]][: 2 + (year == "%y")]
        orders = [["%Y", "%m", "%d"]] if sizes[0] == 4 else orders
    found = [re.sub(r"\d+", "{}", form).format(*order) for order in orders]
    return [form for form in found if read_moment(text, None, form).day is not None]


def _clock(found: re.Match[str]) -> str:
    seconds = ":%S" * bool(found["seconds"]) + ".%f" * bool(found["fraction"])
    half = found["half"] or ""
    clock = f"%I:%M{seconds}{half[:-2]}%p" if half else f"%H:%M{seconds}"
    zone = f"{found['name'] or ''}%z" if found["offset"] else "%z" * bool(found["name"])
    return clock + found["blank"] + zone


def shown_names(names: Sequence[str]) -> list[str]:
    """Return each name as it may be printed: one that may be a text by its position, from 1.

    Several words are a name where another one is usual for a column, so that the line is a header.

    >>> shown_names(["Grad (°C)", "<script>alert(1)</script>", "", "you all"])
    ['Grad (°C)', 'column 2', 'column 3', 'column 4']
    >>> shown_names(["Id", "Moderation decision", "<script>alert(1)</script>"])
    ['Id', 'Moderation decision', 'column 3']
    """
    is_header = any(map(_is_known, names))
    return [
        name
        if SHOWN.fullmatch(name) or (is_header and SHOWN.fullmatch(name.replace(" ", "_")))
        else f"column {position}"
        for position, name in enumerate(names, start=1)
    ]


def _is_known(name: str) -> bool:
    return usual_name(name) in _KNOWN
