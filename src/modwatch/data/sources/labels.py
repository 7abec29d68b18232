"""Labels: one class for all spellings of a label, and classes that look alike."""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from modwatch.common.text import folded, text_problem
from modwatch.data.sources.values import USUAL, Vocabulary, number_of, plain, text_of, vote_of

#: Letters of other scripts that look like Latin ones.
_LOOKALIKES = str.maketrans("авекмнорстухіѕјԁαβεικνορτυχ", "abekmhopctyxisjdabeikvoptux")


def label_of(
    value: object, *, rating: bool = False, vocabulary: Vocabulary = USUAL
) -> tuple[str | None, str | None]:
    """Return a label as text, and its problem; a `rating` is a number.

    Words of the vocabulary that are no vote are no label; what else they mean is not asked.

    >>> label_of(1.0), label_of("1.0"), label_of(" Toxic "), label_of(True)
    (('1', None), ('1', None), ('Toxic', None), ('True', None))
    >>> label_of("nan"), label_of([1, 0]), label_of("high", rating=True)
    ((None, 'no_label'), (None, 'unreadable_label'), (None, 'unreadable_label'))
    """
    value = plain(value)
    text, problem = (str(value), None) if isinstance(value, bool) else text_of(value)
    problem = problem or text_problem(text)
    if problem == "blank_text" or vocabulary.is_no_vote(text):
        return None, "no_label"
    number, _ = number_of(text)
    finite = number is not None and math.isfinite(number)
    if problem or text is None or (rating and not finite):
        return None, "undecodable_text" if problem == "undecodable_text" else "unreadable_label"
    written, inexact = text_of(number) if finite else (None, None)
    return text.strip() if inexact or written is None else written, None


def shown_label(label: str) -> str:
    """Return a label in quotation marks; characters that look like others are escaped.

    >>> shown_label("übel"), shown_label("t\\u043exic")
    ("'übel'", "'t\\\\u043exic'")
    """
    latin = {"LATIN" in unicodedata.name(sign, "") for sign in label if sign.isalpha()}
    return ascii(label) if len(latin) > 1 else repr(label)


def spellings(labels: Iterable[str]) -> dict[str, str]:
    """Return the most frequent spelling of each class by its folded label, numbers by size.

    >>> spellings(["toxic", "Toxic", "none", "toxic"]), list(spellings(["10", "9"]))
    ({'none': 'none', 'toxic': 'toxic'}, ['9', '10'])
    """
    found = dict[str, str]()
    for label, _ in sorted(Counter(labels).items(), key=lambda pair: (-pair[1], pair[0])):
        found.setdefault(folded(label), label)
    return {key: found[key] for key in sorted(found, key=float if numbers_of(found) else None)}


def numbers_of(classes: Iterable[object]) -> list[float]:
    """Return the numbers that the classes are; none if one is no number."""
    numbers = [number_of(label)[0] for label in classes]
    return [] if None in numbers else [number for number in numbers if number is not None]


def look_alikes(classes: Iterable[str]) -> list[list[str]]:
    """Return the classes that may be spellings of one.

    They differ in blanks, punctuation, accents or the script, or are words for the same vote.

    >>> look_alikes(["non toxic", "non-toxic", "toxic", "1", "yes", "-1", "1.5", "15"])
    [['non toxic', 'non-toxic'], ['1', 'yes']]
    """
    alike = dict[object, list[str]]()
    for label in classes:
        alike.setdefault(_appearance(label), []).append(label)
    return [labels for labels in alike.values() if len(labels) > 1]


def _appearance(label: str) -> object:
    number, vote = number_of(label)[0], vote_of(label)[0]
    if vote is not None or number is not None:
        return number if vote is None else vote
    letters = unicodedata.normalize("NFKD", folded(label)).translate(_LOOKALIKES)
    return "".join(filter(str.isalnum, letters)) or label


def notes_on(classes: Sequence[object], *, are_ratings: bool) -> list[str]:
    """Return what readers must know of the classes, in sentences; those of ratings are known."""
    notes = list[str]()
    for alike in () if are_ratings else look_alikes(map(str, classes)):
        shown = ", ".join(shown_label(label[:40]) for label in alike)
        notes.append(f"Labels that may be one and count as different: {shown}.")
    if len(classes) > 2 and numbers_of(classes):
        notes.append(
            "The labels are numbers, and each is a class: the nearest differ as much as the "
            "farthest. Of ratings, --toxic-from NUMBER makes two classes, positive from it on."
        )
    return notes
