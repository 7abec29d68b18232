"""What `modwatch init` proposes from the first rows of a source, and what it doubts."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from modwatch.common.columns import grouped
from modwatch.common.errors import SettingsError
from modwatch.data.sources.inspection import (
    MOST,
    NAMES,
    SCORE_NAMES,
    SHOWN,
    Column,
    shown_names,
    usual_name,
)
from modwatch.data.sources.values import (
    DECISIONS,
    LABELS,
    TAKERS,
    USUAL,
    Vocabulary,
    decision_of,
    taker_of,
    vote_of,
)

#: Columns of words that the vocabulary must know, mostly.
_READERS = {"label": vote_of, "decision": decision_of, "decided_by": taker_of}
#: The largest score in per cent.
PER_CENT = 100
#: Different values of a score, at least, that tell which probability it is.
_DISTINCT = 20
#: What stands in the place of a deleted comment: known words, since they are printed.
_DELETED = re.compile(
    r"(?i)[\[<(]{1,2} ?(comment |kommentar )?"
    "(deleted|removed|erased|unavailable|gelöscht|entfernt|supprimé|effacé|eliminado|borrado|"
    "rimosso|eliminato|removido|excluído|usunięty|usunięto|verwijderd|удалено|удалён)"
    r"( by (the )?(user|author|moderator|mod|admin|reddit))? ?[\])>]{1,2}"
)
#: How often such a text occurs at least, and the share of rows from which another sentence that
#: repeats is told.
_REPEATED, _OFTEN = 3, 0.02
#: What tells a part of a text from others.
_PART = re.compile(r"(part[ _]?)?\d+$")
#: Columns of statements of reasons, as of the DSA Transparency Database, which hold no comments.
_STATEMENTS = {"decisionground", "decisionfacts", "automateddecision"}
#: Mean length of the names of platforms and languages, at most.
_SHORT = 20


def propose(columns: Sequence[Column], rows: int, vocabulary: Vocabulary = USUAL) -> dict[str, str]:
    """Return the column for each Modwatch column that the source seems to have.

    Ids are mostly filled and distinct, texts are text, times are times, and the vocabulary knows
    the words of decisions and of who took them. A text is not taken as it is rendered where it is
    there without tags, too, and not if it is one of several parts. Without a name that tells, the
    text is the longest column of several words, time and id are the only ones that can be, and a
    decision is a column of nothing but the words for it.
    """
    named_texts = [c for c in columns if c.kind == "text" and usual_name(c.name) in NAMES["text"]]
    rendered = {c.name for c in named_texts if c.is_html}
    rendered = rendered if len(rendered) < len(named_texts) else set()
    times = [column for column in columns if column.kind == "time"]
    fitting = {
        "comment_id": [c for c in columns if c.distinct >= MOST * rows and c.kind != "time"],
        "text": [
            c
            for c in columns
            if c.kind == "text"
            and not (c.is_nested or c.name in rendered)
            and not parts(c, columns)
        ],
        "created_at": times,
        "decided_at": times,
        **{name: [c for c in columns if _knows(c, name, vocabulary)] for name in _READERS},
    }
    found: dict[str, str] = {}

    def free(field: str) -> list[Column]:
        fit = fitting.get(field, columns)
        return [c for c in fit if c.kind != "empty" and c.name not in found.values()]

    for field, names in NAMES.items():
        by_name = {usual_name(column.name): column.name for column in reversed(free(field))}
        if named := next((by_name[name] for name in names if name in by_name), None):
            found[field] = named
    for field in ("text", "created_at", "comment_id"):
        fit = free(field)
        if field == "comment_id":
            fit = [column for column in fit if column.filled == column.distinct == rows]
        if field == "text":
            fit = sorted((c for c in fit if c.is_prose), key=lambda c: -c.mean_length)[:1]
        if field not in found and len(fit) == 1:
            found[field] = fit[0].name
    told = [c for c in free("decision") if len(c.words) > 1]
    told = [c for c in told if not unknown_words(c, "decision", vocabulary)]
    if len(told) == 1:
        found.setdefault("decision", told[0].name)
    return found


def parts(column: Column, columns: Sequence[Column]) -> list[str]:
    """Return the columns that seem to hold one text together; none for a whole one.

    >>> from modwatch.data.sources.inspection import look
    >>> columns = look([{"text_1": "you are", "text_2": "wrong"}], ["text_1", "text_2"])
    >>> parts(columns[0], columns)
    ['text_1', 'text_2']
    """
    stem = _stem(column)
    alike = [other.name for other in columns if other.kind == "text" and _stem(other) == stem]
    return alike if len(alike) > 1 and stem in NAMES["text"] else []


def unknown_words(column: Column, field: str, vocabulary: Vocabulary) -> dict[str, int]:
    """Return the words of a column, with their number, that mean nothing as a `field`.

    >>> from modwatch.data.sources.inspection import look
    >>> [column] = look([{"d": word} for word in ("kept", "weg", "weg")], ["d"])
    >>> unknown_words(column, "decision", USUAL)
    {'weg': 2}
    """
    read = _READERS[field]
    return {word: number for word, number in column.words.items() if read(word, vocabulary)[1]}


def _knows(column: Column, field: str, vocabulary: Vocabulary) -> bool:
    unknown = sum(unknown_words(column, field, vocabulary).values())
    return bool(column.words) and unknown <= (1 - MOST) * column.filled


def _stem(column: Column) -> str:
    return usual_name(_PART.sub("", column.name.lower()))


def propose_score(columns: Sequence[Column], rows: int) -> str | None:
    """Return the column that may hold a model's probabilities of toxic; None: none does.

    Some may be missing, as where a service does not know the language.
    """
    found = {
        usual_name(c.name): c.name for c in reversed(columns) if c.is_share and not doubt(c, rows)
    }
    return next((found[name] for name in SCORE_NAMES if name in found), None)


def doubt(column: Column, rows: int) -> str | None:
    """Return why a column named like a score may be no probability of toxic; None: nothing says so.

    >>> from modwatch.data.sources.inspection import look
    >>> rows = [{"score": 0.5 + n / 50} for n in range(25)]
    >>> doubt(*look(rows, ["score"]), len(rows))
    'no number is under 0.5, as of the probability of the predicted class, whichever it is'
    """
    if usual_name(column.name) not in SCORE_NAMES or column.ends is None:
        return None
    low, high = column.ends
    if low < 0 or high > PER_CENT:  # such as the votes that a comment got
        return None
    if high > 1:
        return f"numbers from {low:g} to {high:g}, perhaps in per cent"
    if 2 * column.filled < rows:
        return f"{rows - column.filled:,} of {rows:,} rows have none"
    if low >= 0.5 and column.distinct >= _DISTINCT:
        return (
            "no number is under 0.5, as of the probability of the predicted class, whichever it is"
        )
    return None


def deletions(texts: Sequence[object]) -> Counter[str]:
    """Return the texts that stand for deleted comments, with their number: words in brackets.

    >>> deletions(["[deleted]"] * 3 + ["[ Removed by moderator ]"] * 4 + ["[laughs]"] * 9)
    Counter({'[ Removed by moderator ]': 4, '[deleted]': 3})
    """
    found = Counter(text for text in texts if isinstance(text, str) and _DELETED.fullmatch(text))
    return Counter({text: number for text, number in found.items() if number >= _REPEATED})


def repetition(texts: Sequence[object]) -> int:
    """Return how many rows have the most frequent sentence, if these are many; otherwise 0."""
    sentences = [text for text in texts if isinstance(text, str) and len(text.split()) > 2]
    number = max(Counter(sentences).values(), default=0)
    return number if number >= max(_REPEATED, _OFTEN * len(texts)) else 0


def describe_choice(
    chosen: Mapping[str, str], columns: Sequence[Column], names: Sequence[str], rows: int
) -> str:
    """Return which column Modwatch reads as what, and which of `names` it leaves out, in lines.

    Columns with few values may be a platform or a language, by which figures are broken down.

    >>> from modwatch.data.sources.inspection import look
    >>> found = [{"id": n, "t": f"remark {n}", "Kanal": "ab"[n % 2]} for n in range(20)]
    >>> columns = look(found, ["id", "t", "Kanal"])
    >>> print(describe_choice({"comment_id": "id", "text": "t"}, columns, ["id", "t", "Kanal"], 20))
    Modwatch reads:
      comment_id  from id
      text        from t
    Left out: Kanal.
    Kanal: few values, like a platform or a language; figures by platform and language need
    --column platform=COLUMN and --column language=COLUMN.
    """
    labels = shown_names(names)
    shown = dict(zip(names, labels, strict=True))
    width = max(map(len, chosen))
    lines = ["Modwatch reads:"]
    lines += [f"  {field:{width}}  from {shown[column]}" for field, column in chosen.items()]
    read = set(chosen.values())
    left = [label for name, label in zip(names, labels, strict=True) if name not in read]
    lines.append(f"Left out: {', '.join(left) or 'no column'}.")
    open_fields = [field for field in grouped() if field not in chosen]
    few = [shown[c.name] for c in columns if c.name not in read and _has_few_values(c, rows)]
    if few and open_fields:
        options = " and ".join(f"--column {field}=COLUMN" for field in open_fields)
        lines.append(
            f"{', '.join(few)}: few values, like a {' or a '.join(open_fields)}; figures by "
            f"{' and '.join(open_fields)} need\n{options}."
        )
    reasons = {shown[c.name]: doubt(c, rows) for c in columns if c.name not in read}
    lines += [
        f"{name}: {reason}. --own-scores {name} takes them for probabilities of toxic."
        for name, reason in reasons.items()
        if reason
    ]
    return "\n".join(lines)


def _has_few_values(column: Column, rows: int) -> bool:
    """Return whether a column can be a platform or a language: short texts that repeat."""
    return (
        column.kind == "text"
        and column.filled * 2 >= rows
        and 2 <= column.distinct <= column.filled / 5
        and column.mean_length <= _SHORT
    )


def open_decisions(
    columns: Sequence[Column],
    chosen: Mapping[str, str],
    vocabulary: Vocabulary,
    *,
    decided_by: str | None = None,
) -> Iterator[str]:
    """Yield what is open about labels and decisions: what words mean, and who decided.

    `chosen` has the column of each field; `decided_by` took the decisions that do not say.
    """
    given = [column.name for column in columns]
    shown = dict(zip(given, shown_names(given), strict=True))
    for field, meanings in (("label", LABELS), ("decision", DECISIONS), ("decided_by", TAKERS)):
        fits = (c for c in columns if c.name == chosen.get(field))
        names = NAMES.get(field, ())
        named = (c for c in columns if usual_name(c.name) in names and c.words)
        column = next(fits, None) or next(named, None)
        unknown = unknown_words(column, field, vocabulary) if column is not None else {}
        if column is None or not unknown or column.name in _others(chosen, field):
            continue
        words = ", ".join(f"{w} ({n:,})" for w, n in unknown.items() if SHOWN.fullmatch(w))
        name = shlex.quote(f"{field}={shown[column.name]}")
        yield (
            f"{shown[column.name]}: no meaning is known of {words or 'some words'}; add --value "
            f"WORD={'|'.join(meanings)} for each, or WORD=abstain where it means none"
            f"{'.' if chosen.get(field) else f', and --column {name}.'}"
        )
    if not chosen.get("decision"):
        yield (
            "No column has decisions of the platform; flags of a model are no measures, so that "
            "DSA files stay empty (--column decision=COLUMN)."
        )
    elif not (chosen.get("decided_by") or decided_by):
        yield (
            "No column says who took the decisions, so that DSA files stay empty; add --decided-by "
            "model, rule or person, or --column decided_by=COLUMN."
        )


def _others(chosen: Mapping[str, str], field: str) -> set[str]:
    return {column for name, column in chosen.items() if name != field}


def why_no_text(columns: Sequence[Column]) -> str:
    """Return, as the end of a sentence, why none of the columns is the text; empty if unknown."""
    if split := next(filter(None, (parts(column, columns) for column in columns)), []):
        names = ", ".join(shown_names(split))
        return f"; {names} look like parts of one text: join them at the source"
    if nested := [column.name for column in columns if column.is_nested]:
        return (
            f"; {', '.join(shown_names(nested))} hold lists or objects: export what is in them as "
            "columns of their own, such as CSV"
        )
    return ""


def require_comments(names: Sequence[str]) -> None:
    """Raise SettingsError for statements of reasons, which say what was decided on no text."""
    if {usual_name(name) for name in names} >= _STATEMENTS:
        raise SettingsError(
            "these are statements of reasons, as of the DSA Transparency Database: they say what "
            "was decided and why, and have no comments. Join them to your comments by your own id, "
            "and name --column decision=… and --column decided_by=…, or name --column text=COLUMN"
        )
