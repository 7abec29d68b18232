"""The words of the queue, for people: statuses, reasons, actions, roles."""

from collections.abc import Mapping

from modwatch.review.console.i18n import N_

#: What is not here is shown as it is.
WORDS: Mapping[str, str] = {
    # Statuses.
    "waiting": N_("waiting"),
    "blocked": N_("waiting for another label"),
    "escalated": N_("for a lead"),
    "decided": N_("decided"),
    "withdrawn": N_("withdrawn"),
    "closed": N_("given up"),
    # Why an item was sent.
    "uncertainty": N_("uncertain"),
    "toxicity": N_("likely toxic"),
    "hybrid": N_("uncertain or likely toxic"),
    "random_slice": N_("random sample"),
    "retest": N_("retest"),
    "gold": N_("known answer"),
    "audit": N_("audit"),
    "second_opinion": N_("second opinion"),
    "imported": N_("imported"),
    "review": N_("review"),
    # What happened.
    "queued": N_("sent to the queue"),
    "label": N_("labelled"),
    "adjudicate": N_("settled by a lead"),
    "correct": N_("corrected"),
    "skip": N_("skipped"),
    "escalate": N_("handed to a lead"),
    "undo": N_("taken back"),
    "close": N_("given up"),
    "reopen": N_("brought back"),
    # Closings.
    "closing": N_("under way"),
    "bringing back": N_("being brought back"),
    "brought back": N_("brought back"),
    # Roles.
    "moderator": N_("moderator"),
    "lead": N_("lead"),
    "auditor": N_("auditor"),
    "ops": N_("ops"),
    "admin": N_("admin"),
}
