"""The vocabulary of the templates, as in the English CSV files that the Commission publishes.

Part 8, automated means, is section 1.6 of Annex I; its file is document 113338 of
ec.europa.eu/newsroom/dae, and the tests rebuild its bytes from this vocabulary. Part 11 is the
qualitative template. The other parts are only recognised. The Commission's files have trailing
blanks in some names; these are omitted here, and ignored when reading. `docs/dsa.md` lists what is
interpretation.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

#: Columns of part 8, in order.
COLUMNS = (
    "Applicability",
    "Service",
    "Reporting period",
    "Section",
    "Indicator",
    "Scope",
    "Value",
    "Contextual Information",
)
#: Columns of part 11, in order.
QUALITATIVE_COLUMNS = ("Applicability", "Service", "Reporting period", "Indicator", "Value")

#: The one section of part 8.
SECTION = "Use of automated means for content moderation"


class Indicator(StrEnum):
    """The indicators of part 8."""

    MEASURES_SOLELY = "Number of measures solely taken by automated means"
    MEASURES_NOT = "Number of measures not taken by automated means"
    NOTICES_SOLELY = "Number of notices solely processed by automated means"
    NOTICES_NOT = "Number of notices not processed by automated means"
    ACCURACY = "Accuracy of the automated means - Accuracy"
    PRECISION = "Accuracy of the automated means - Precision"
    RECALL = "Accuracy of the automated means - Recall"


#: Shares in [0, 1]; the other indicators are counts.
RATES = (Indicator.ACCURACY, Indicator.PRECISION, Indicator.RECALL)
_MEASURES = (Indicator.MEASURES_SOLELY, Indicator.MEASURES_NOT)
_NOTICES = (Indicator.NOTICES_SOLELY, Indicator.NOTICES_NOT)

TOTAL = "Total number"
OWN_INITIATIVE = "Own-initiative"
#: NAM: the mechanism for notices and action of Article 16.
NAM_TOTAL = "NAM Total"
NAM_TRUSTED_FLAGGER = "NAM Trusted Flagger"

#: The official languages of the EU by ISO 639-1 code; Greek is `el`.
LANGUAGES: Mapping[str, str] = MappingProxyType(
    {
        "bg": "Bulgarian", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
        "en": "English", "es": "Spanish", "et": "Estonian", "fi": "Finnish", "fr": "French",
        "ga": "Irish", "hr": "Croatian", "hu": "Hungarian", "it": "Italian", "lt": "Lithuanian",
        "lv": "Latvian", "mt": "Maltese", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese",
        "ro": "Romanian", "sk": "Slovak", "sl": "Slovenian", "sv": "Swedish",
    }
)  # fmt: skip

#: Countries whose code is not an official language, with the language that is usually meant.
COUNTRIES: Mapping[str, str] = MappingProxyType(
    {
        "at": "Austria", "be": "Belgium", "ch": "Switzerland", "cy": "Cyprus",
        "cz": "Czechia (Czech is cs)", "dk": "Denmark (Danish is da)",
        "ee": "Estonia (Estonian is et)", "gb": "the United Kingdom (English is en)",
        "gr": "Greece (Greek is el)", "ie": "Ireland (Irish is ga)", "lu": "Luxembourg",
        "se": "Sweden (Swedish is sv)", "si": "Slovenia (Slovenian is sl)",
        "us": "the United States (English is en)",
    }
)  # fmt: skip


#: Languages whose code is not that of a member state (ISO 3166); the others are ambiguous.
LANGUAGES_ONLY = frozenset(("cs", "da", "el", "en", "et", "ga", "sl", "sv"))


class Provider(StrEnum):
    """Kinds of providers, each with the obligations of those before it.

    A very large online search engine has the scopes of an intermediary service: part 8 requires
    neither notices nor languages of it.
    """

    INTERMEDIARY = "intermediary service"
    HOSTING = "hosting service"
    PLATFORM = "online platform"
    VLOP = "very large online platform"

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that part 8 requires of it, in the order of the template.

        >>> Provider.HOSTING.scopes
        ('Total number', 'Own-initiative', 'NAM Total')
        """
        kinds = list(Provider)
        mine = kinds[: kinds.index(self) + 1]
        return tuple(scope for scope, kind in REQUIRED_OF.items() if kind in mine)


#: The first kind of provider that a scope is required of, in the order of the template.
REQUIRED_OF: Mapping[str, Provider] = MappingProxyType(
    {
        TOTAL: Provider.INTERMEDIARY,
        OWN_INITIATIVE: Provider.INTERMEDIARY,
        NAM_TOTAL: Provider.HOSTING,
        NAM_TRUSTED_FLAGGER: Provider.PLATFORM,
        **dict.fromkeys(LANGUAGES, Provider.VLOP),
    }
)

#: Text of the first column for rows required of a kind of provider and those after it.
APPLICABILITY: Mapping[Provider, str] = MappingProxyType(
    {
        Provider.INTERMEDIARY: "All",
        Provider.HOSTING: "Only for providers of hosting services, including online platforms",
        Provider.PLATFORM: "Only for providers of online platforms",
        Provider.VLOP: "Only for VLOPs",
    }
)


def counts_of(scope: str) -> tuple[Indicator, Indicator]:
    """Return the two counts of a scope: solely by automated means, and not.

    >>> counts_of("NAM Total")[0].value
    'Number of notices solely processed by automated means'
    """
    return _NOTICES if scope in (NAM_TOTAL, NAM_TRUSTED_FLAGGER) else _MEASURES


def indicators_of(scope: str) -> tuple[Indicator, ...]:
    """Return the five indicators of a scope, in the order of the template."""
    return (*counts_of(scope), *RATES)


#: The rows of part 11 on automated means.
DESCRIPTION = "Qualitative description of the automated means"
ACCURACY_DESCRIPTION = (
    "Qualitative description of indicators of accuracy and possible rate of error of automated "
    "means"
)
PURPOSES = "Specification of the precise purposes to apply automated means"
SAFEGUARDS = "Safeguards applied to the use of automated means"
QUALITATIVE = (DESCRIPTION, ACCURACY_DESCRIPTION, PURPOSES, SAFEGUARDS)

#: Every row of part 11, in order, with the first kind of provider that it is required of.
ALL_QUALITATIVE: Mapping[str, Provider] = MappingProxyType(
    {
        "Summary of the content moderation engaged in at the providers’ own initiative": (
            Provider.INTERMEDIARY
        ),
        "Meaningful and comprehensible information regarding content moderation engaged in at the "
        "providers' own initiative": Provider.INTERMEDIARY,
        **dict.fromkeys(QUALITATIVE, Provider.INTERMEDIARY),
        "High-level description of the content moderation governance structure": Provider.VLOP,
        "Qualifications of the human resources dedicated to content moderation": Provider.VLOP,
        "Training given to human resources dedicated to content moderation": Provider.VLOP,
        "Support given to human resources dedicated to content moderation": Provider.VLOP,
        "Methodology used to compute the number of human resources dedicated to content "
        "moderation": Provider.VLOP,
    }
)

_PART_5 = "part 5, measures against illegal content at the provider's own initiative"
_PART_6 = "part 6, measures under the terms and conditions at the provider's own initiative"
_PART_7 = "part 7, appeals and recidivism"
#: The other parts, by a column, section or indicator that the parts after it in the list lack.
OTHER_PARTS: Mapping[str, str] = MappingProxyType(
    {
        "Name of the service provider": "part 1, identification of the report",
        "Category label": "part 2, names of categories",
        "Number of orders to act against illegal content received": "part 3, orders of authorities",
        "Number of notices received": "part 4, notices",
        "Category of incompatibility with the provider's terms and conditions": _PART_6,
        "Number of measures taken at the provider's own initiative": _PART_5,
        "Internal complaints mechanism": _PART_7,
        "Out-of-court dispute settlement bodies": _PART_7,
        "Suspensions imposed on repeated offenders": _PART_7,
        "Human resources dedicated to content moderation": "part 9, human resources",
        "AMAR": "part 10, average monthly active recipients",
    }
)

#: Placeholders of the templates.
PLACEHOLDER_PERIOD = "YYYY-MM-DD/YYYY-MM-DD"
PLACEHOLDER_SCOPE = "[...]"
PLACEHOLDER_TEXT = "Free text"
