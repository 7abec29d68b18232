"""Which class of another trainer's model is toxicity, by the names of the classes."""

import re
from collections.abc import Sequence

from modwatch.common.errors import ModelError
from modwatch.models.registry import CLASS_TAG

_TOXIC = {"toxic", "toxicity"}
_WORDS = _TOXIC | {
    *("hate", "hateful", "hatespeech", "offensive", "abuse", "abusive", "harmful", "insult"),
    *("insulting", "obscene"),
}
#: Words that may stand with one of these.
_FILLERS = {"speech", "language", "text", "comment", "content", "is", "label", "yes", "true"}
#: The words of a name: `NonToxic` has two, `nontoxic` is another word than `toxic`.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


def positive_class(names: Sequence[object], stated: str | None, *, model_version: str) -> int:
    """Return the position of the class of toxic texts among `names`.

    It is the one with the name `stated`; None: the only one whose name says toxic, hateful,
    offensive, abusive, harmful, insulting or obscene, and nothing else, or the only one called
    toxic or toxicity. Of the numbers 0 and 1, it is 1.

    >>> positive_class(["Toxic", "non-toxic"], None, model_version="2")
    0
    >>> positive_class(["fine", "rude"], "rude", model_version="2")
    1

    Raises:
        ModelError: no class, or more than one, has this name; or the names do not tell.
    """
    said = [str(name) for name in names]
    if stated is not None:
        found = [place for place, name in enumerate(said) if name == stated.strip()]
    elif list(names) == [0, 1]:  # or False and True
        return 1
    else:
        words = [{word.lower() for word in _WORD.findall(name)} for name in said]
        found = [i for i, some in enumerate(words) if some & _WORDS and some <= _WORDS | _FILLERS]
        exact = [i for i in found if words[i] <= _TOXIC]
        found = exact if len(exact) == 1 else found
    if len(found) != 1:
        reason = "its names do not tell" if stated is None else f"none or several are {stated!r}"
        raise ModelError(
            f"which class of version {model_version} is toxicity? It has {', '.join(said)}, and "
            f"{reason}; set the tag {CLASS_TAG} of the version to the name of one"
        )
    return found[0]
