"""The seed of an audit's draw, which no one can choose.

It is made of the plan and of what is fixed when the plan is approved: the ends of all chains of the
decision log, a random number of the database, which draws one for a plan and keeps it, and, if the
plan names one, a public value of the future. So the planner cannot know it, and the approver cannot
try again without another plan, which the register of audits shows.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

from modwatch.audits.evidence import Event, first_of
from modwatch.common.errors import AuditError
from modwatch.statistics.audit.plan import AuditPlan

#: Facts of an approval: SHA-256 of the witness of the decision log, and the database's number.
LOG, NUMBER = "decision_log", "random_number"

#: Fact of the first draw: the public value that the plan names.
PUBLIC_VALUE = "public_value"

_HEX = re.compile("[0-9a-f]{64}")


def seed_of(plan: AuditPlan, chain: Sequence[Event]) -> str:
    """Return the seed of the draw, SHA-256 of what fixes it.

    Raises:
        AuditError: the plan is not approved, the approval does not state what the seed depends on,
            or the public value that the plan names is missing.
    """
    approved, drawn = first_of(chain, "approved"), first_of(chain, "drawn")
    if approved is None:
        raise AuditError(f"audit {plan.audit!r} has no seed before its plan is approved")
    return made_seed(plan, approved.facts, drawn.facts.get(PUBLIC_VALUE, "") if drawn else "")


def made_seed(plan: AuditPlan, facts: Mapping[str, str], public_value: str = "") -> str:
    """Return the seed of a plan, from the facts of its approval and the public value.

    >>> from datetime import date
    >>> from modwatch.statistics.audit.plan import PlannedStratum, PopulationDay
    >>> day = PopulationDay(day=date(2026, 1, 5), comments=100, flagged=0, model_version="3",
    ...                     threshold=0.5, digest="00", texts="11")
    >>> stratum = PlannedStratum(side="unflagged", lower=None, upper=None, population=100,
    ...                          labels=10, score=0.02)
    >>> plan = AuditPlan(audit="2026-01", population=(day,), strata=(stratum,))
    >>> one, other = ({LOG: 64 * "a", NUMBER: 64 * digit} for digit in "bc")
    >>> made_seed(plan, one) == made_seed(plan, other)
    False
    """
    if any(not _HEX.fullmatch(facts.get(name, "")) for name in (LOG, NUMBER)):
        raise AuditError(f"audit {plan.audit!r}: the approval does not fix the seed of the draw")
    if not public_value.isprintable():
        raise AuditError(f"audit {plan.audit!r}: the public value is not printable text")
    if bool(plan.public_value) != bool(public_value):
        what = f"needs the public value {plan.public_value!r}" if plan.public_value else "takes no"
        raise AuditError(
            f"audit {plan.audit!r}: the draw {what}"
            + ("; wait until it is published and give it" if plan.public_value else " public value")
        )
    parts = ["modwatch audit seed", plan.digest, facts[LOG], facts[NUMBER], public_value]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
