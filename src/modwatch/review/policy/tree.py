"""The moderation policy: a tree of codes, and reasons for actions other than labels.

A policy is data with a version. Each decision stores the version and the code, so that it can still
be interpreted years later.

Codes name categories and keywords of statements of reasons in the EU's DSA Transparency Database:
those of the schema in force since 1 July 2025, aligned with Implementing Regulation (EU) 2024/2835:
the values of `category` and `category_specification` in version 2 of the database's API
(`resources/markdown/api-documentation-two.md` of digital-services-act/transparency-database). Left
out: KEYWORD_STALKING, which the API accepts but annex II of the regulation assigns to no category,
and STATEMENT_CATEGORY_NOT_SPECIFIED_ORDER, which exists in transparency reports only.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from sqlalchemy import Engine, select
from sqlalchemy.dialects.postgresql import insert

from modwatch.common.errors import QueueError, SettingsError
from modwatch.review.database import json_digest
from modwatch.review.events import record_event
from modwatch.review.tables import policy_version
from modwatch.settings.file import read_toml, validated

#: Actions that require a reason.
Action = Literal["skip", "escalate", "correct", "close"]

_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$", max_length=60)]
_Sentence = Annotated[str, Field(min_length=1, max_length=300)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class Texts(_Data):
    """A text in every language of the console."""

    en: _Sentence
    de: _Sentence

    def in_locale(self, locale: str) -> str:
        """Return the text in `locale`, or in English for an unknown locale.

        >>> Texts(en="Insult", de="Beleidigung").in_locale("de")
        'Beleidigung'
        """
        return self.de if locale.split("-")[0].split("_")[0] == "de" else self.en


class NodeSchema(_Data):
    """One code in the file."""

    #: Stable and short; stored with decisions.
    code: _Name
    #: The code above it, if any.
    parent: _Name | None = None
    title: Texts
    #: One sentence about when to choose it.
    description: Texts
    #: 1 toxic, 0 not.
    label: Literal[0, 1]
    #: Keyboard shortcut.
    key: Annotated[str, Field(pattern=r"^[a-z0-9]$")] | None = None
    #: Category of the DSA statement of reasons; None if no statement is due.
    dsa_category: str | None = None
    #: Keyword that specifies the category.
    dsa_keyword: str | None = None


class Policy(_Data):
    """One version of the policy."""

    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=40)]
    #: Every code, in the order of the file, with the category that it inherits.
    nodes: Annotated[tuple[NodeSchema, ...], Field(alias="node", min_length=2)]
    #: Reasons by `Action`, in the order of the file.
    reasons: dict[str, dict[_Name, Texts]]

    @field_validator("nodes")
    @classmethod
    def _inherit(cls, nodes: tuple[NodeSchema, ...]) -> tuple[NodeSchema, ...]:
        category = {node.code: node.dsa_category for node in nodes}
        inherited = (node.dsa_category or category.get(node.parent or "") for node in nodes)
        return tuple(
            node.model_copy(update={"dsa_category": name})
            for node, name in zip(nodes, inherited, strict=True)
        )

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_unique("code", [node.code for node in self.nodes])
        _check_unique("key", [node.key for node in self.nodes if node.key])
        nodes = {node.code: node for node in self.nodes}
        for node in self.nodes:
            _check_parent(node, nodes)
            _check_category(node)
        if unknown := sorted(self.reasons.keys() - get_args(Action)):
            raise ValueError(f"reasons.{unknown[0]} is of an unknown action")
        for action in get_args(Action):
            if not self.reasons.get(action):
                raise ValueError(f"reasons.{action} is empty")
        return self

    @property
    def content(self) -> dict[str, Any]:
        """The whole policy as JSON, in the form that is stored."""
        return self.model_dump(mode="json", exclude_none=True, by_alias=True)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the content, in hex."""
        return json_digest(self.content)

    def code(self, code: str) -> NodeSchema:
        """Return the node of `code`; raise `QueueError` for an unknown code."""
        for node in self.nodes:
            if node.code == code:
                return node
        raise QueueError(
            f"the policy {self.version} has no code {code[:60]!r}; choose one of its codes"
        )


@cache
def load_policy(path: Path | None = None) -> Policy:
    """Return the policy in the file at `path`, or the one that comes with Modwatch if None.

    Raises:
        SettingsError: the file does not exist, is not TOML, or is invalid; the message names the
            node.
    """
    file = path or Path(__file__).with_name("policy.toml")
    return validated(Policy, read_toml(file), str(file))


def check(policy: Policy, label: int, code: str | None, *, required: bool = False) -> None:
    """Raise `QueueError` unless `code` is one of `policy` for `label`.

    None is valid unless a code is `required`.

    >>> check(load_policy(), 1, "hate.slur")
    """
    if code is None:
        if required:
            raise QueueError(
                f"a decision requires a code of the policy {policy.version}; choose one"
            )
        return
    node = policy.code(code)
    if node.label != label:
        raise QueueError(
            f"the code {code} of the policy {policy.version} is for the label {node.label}, not "
            f"{label}; choose another code or the other label"
        )


def check_reason(policy: Policy, action: str, reason: str | None) -> None:
    """Raise `QueueError` unless `reason` is one that `policy` lists for `action`.

    An action without a list must have no reason.

    >>> check_reason(load_policy(), "skip", "language")
    """
    known = policy.reasons.get(action, {})
    if reason is None and not known:
        return
    if reason not in known:
        remedy = f"choose from {', '.join(known)}" if known else "leave it out"
        raise QueueError(
            f"{str(reason)[:60]!r} is not a reason to {action} in the policy {policy.version}; "
            f"{remedy}"
        )


def register_policy(engine: Engine, policy: Policy) -> None:
    """Store `policy` under its version, if it is not stored yet.

    Raises:
        SettingsError: the version is stored with different content.
    """
    row = {"version": policy.version, "digest": policy.digest, "content": policy.content}
    with engine.begin() as connection:
        new = connection.execute(insert(policy_version).values(row).on_conflict_do_nothing())
        stored = connection.scalar(
            select(policy_version.c.digest).where(policy_version.c.version == policy.version)
        )
        if new.rowcount:
            record_event(
                connection,
                "register_policy",
                actor_id=None,
                version=policy.version,
                digest=policy.digest,
            )
    if stored != policy.digest:
        raise SettingsError(
            f"the policy {policy.version} was in use with different content; choose a new version "
            "in policy.toml"
        )


def _check_unique(what: str, names: Iterable[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"{times} nodes have the {what} {name}")


def _check_parent(node: NodeSchema, nodes: Mapping[str, NodeSchema]) -> None:
    if node.parent is None:
        return
    parent = nodes.get(node.parent)
    if parent is None:
        raise ValueError(f"the node {node.code} has the unknown parent {node.parent}")
    if node.code in (node.parent, parent.parent):
        raise ValueError(f"the node {node.code} is its own ancestor")
    if parent.parent is not None:
        raise ValueError(f"the node {node.code} is on a third level, but there may be only two")
    if parent.label != node.label:
        raise ValueError(f"the node {node.code} has another label than its parent {parent.code}")


def _check_category(node: NodeSchema) -> None:
    category = node.dsa_category
    if category is None and node.label == 1:
        raise ValueError(f"the node {node.code} lacks a DSA category")
    if category is not None and node.label == 0:
        raise ValueError(f"the node {node.code} has a DSA category although it is not toxic")
    if category is not None and category not in CATEGORIES:
        raise ValueError(f"the node {node.code} has the unknown DSA category {category}")
    keyword = node.dsa_keyword
    if keyword is not None and keyword not in CATEGORIES.get(category or "", ()):
        raise ValueError(
            f"the node {node.code} has the DSA keyword {keyword}, which {category} does not have"
        )


_KEYWORDS = {
    "ANIMAL_WELFARE": "ANIMAL_HARM UNLAWFUL_SALE_ANIMALS",
    "CONSUMER_INFORMATION": (
        "HIDDEN_ADVERTISEMENT INSUFFICIENT_INFORMATION_ON_TRADERS MISLEADING_INFO_GOODS_SERVICES "
        "MISLEADING_INFO_CONSUMER_RIGHTS NONCOMPLIANCE_PRICING"
    ),
    "CYBER_VIOLENCE": (
        "CYBER_BULLYING_INTIMIDATION CYBER_HARASSMENT CYBER_INCITEMENT CYBER_STALKING "
        "NON_CONSENSUAL_IMAGE_SHARING NON_CONSENSUAL_MATERIAL_DEEPFAKE"
    ),
    "CYBER_VIOLENCE_AGAINST_WOMEN": (
        "BULLYING_AGAINST_GIRLS CYBER_HARASSMENT_AGAINST_WOMEN CYBER_STALKING_AGAINST_WOMEN "
        "FEMALE_GENDERED_DISINFORMATION INCITEMENT_AGAINST_WOMEN "
        "NON_CONSENSUAL_IMAGE_SHARING_AGAINST_WOMEN NON_CONSENSUAL_MATERIAL_DEEPFAKE_AGAINST_WOMEN"
    ),
    "DATA_PROTECTION_AND_PRIVACY_VIOLATIONS": (
        "BIOMETRIC_DATA_BREACH DATA_FALSIFICATION MISSING_PROCESSING_GROUND RIGHT_TO_BE_FORGOTTEN"
    ),
    "ILLEGAL_OR_HARMFUL_SPEECH": "DEFAMATION DISCRIMINATION HATE_SPEECH",
    "INTELLECTUAL_PROPERTY_INFRINGEMENTS": (
        "COPYRIGHT_INFRINGEMENT DESIGN_INFRINGEMENT GEOGRAPHIC_INDICATIONS_INFRINGEMENT "
        "PATENT_INFRINGEMENT TRADE_SECRET_INFRINGEMENT TRADEMARK_INFRINGEMENT"
    ),
    "NEGATIVE_EFFECTS_ON_CIVIC_DISCOURSE_OR_ELECTIONS": (
        "MISINFORMATION_DISINFORMATION VIOLATION_EU_LAW VIOLATION_NATIONAL_LAW"
    ),
    "NOT_SPECIFIED_NOTICE": "",
    "OTHER_VIOLATION_TC": (
        "ADULT_SEXUAL_MATERIAL AGE_SPECIFIC_RESTRICTIONS GEOGRAPHICAL_REQUIREMENTS "
        "GOODS_SERVICES_NOT_PERMITTED LANGUAGE_REQUIREMENTS NUDITY"
    ),
    "PROTECTION_OF_MINORS": (
        "AGE_SPECIFIC_RESTRICTIONS_MINORS CHILD_SEXUAL_ABUSE_MATERIAL "
        "CHILD_SEXUAL_ABUSE_MATERIAL_DEEPFAKE GROOMING_SEXUAL_ENTICEMENT_MINORS UNSAFE_CHALLENGES"
    ),
    "RISK_FOR_PUBLIC_SECURITY": (
        "ILLEGAL_ORGANIZATIONS RISK_ENVIRONMENTAL_DAMAGE RISK_PUBLIC_HEALTH TERRORIST_CONTENT"
    ),
    "SCAMS_AND_FRAUD": (
        "IMPERSONATION_ACCOUNT_HIJACKING INAUTHENTIC_ACCOUNTS INAUTHENTIC_LISTINGS "
        "INAUTHENTIC_USER_REVIEWS PHISHING PYRAMID_SCHEMES"
    ),
    "SELF_HARM": "CONTENT_PROMOTING_EATING_DISORDERS SELF_MUTILATION SUICIDE",
    "UNSAFE_AND_PROHIBITED_PRODUCTS": "PROHIBITED_PRODUCTS UNSAFE_PRODUCTS",
    "VIOLENCE": (
        "COORDINATED_HARM INCITEMENT_VIOLENCE_HATRED HUMAN_EXPLOITATION HUMAN_TRAFFICKING "
        "TRAFFICKING_WOMEN_GIRLS"
    ),
}


#: Every category of a statement of reasons, with the keywords that may specify it: KEYWORD_OTHER
#: exists in every category that has keywords.
CATEGORIES: Mapping[str, frozenset[str]] = {
    f"STATEMENT_CATEGORY_{category}": frozenset(
        f"KEYWORD_{name}" for name in (f"{keywords} OTHER" if keywords else "").split()
    )
    for category, keywords in _KEYWORDS.items()
}
