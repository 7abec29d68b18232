"""Names that the pages show for statuses, reasons, actions and roles."""

from collections.abc import Mapping

from modwatch.review.console.i18n import N_

#: A value without a name is shown as it is.
DISPLAY_NAMES: Mapping[str, str] = {
    # Statuses.
    "waiting": N_("waiting"),
    "blocked": N_("blocked"),
    "escalated": N_("escalated"),
    "decided": N_("decided"),
    "withdrawn": N_("withdrawn"),
    "closed": N_("dismissed"),
    # Why an item was sent.
    "uncertainty": N_("uncertain"),
    "toxicity": N_("likely toxic"),
    "hybrid": N_("uncertain or likely toxic"),
    "random_slice": N_("random sample"),
    "retest": N_("retest"),
    "gold": N_("gold comment"),
    "audit": N_("audit"),
    "second_opinion": N_("second opinion"),
    "imported": N_("imported"),
    "review": N_("review"),
    # Events of an item.
    "queued": N_("queued"),
    "label": N_("labelled"),
    "adjudicate": N_("resolved by a lead"),
    "correct": N_("corrected"),
    "skip": N_("skipped"),
    "escalate": N_("escalated"),
    "undo": N_("undone"),
    "close": N_("dismissed"),
    "reopen": N_("restored"),
    # States of a bulk dismissal.
    "closing": N_("in progress"),
    "bringing back": N_("being restored"),
    "brought back": N_("restored"),
    # Roles.
    "moderator": N_("moderator"),
    "lead": N_("lead"),
    "auditor": N_("auditor"),
    "ops": N_("ops"),
    "admin": N_("admin"),
}
