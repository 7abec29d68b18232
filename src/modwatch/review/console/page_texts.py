"""Texts that pages show for a word: names of statuses, reasons and roles, and notices."""

from collections.abc import Mapping

from modwatch.review.console.i18n import N_

#: Names of statuses, reasons, actions and roles; a value without a name is shown as it is.
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
    "confirmation": N_("confirmation"),
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

#: Messages after a redirect, by the first part of the page's path and `?notice=`.
NOTICES: Mapping[str, Mapping[str, str]] = {
    "": {
        "conflict": N_(
            "That comment is no longer assigned to you: the time limit expired, or it was "
            "withdrawn or already decided. Nothing was lost; here is the next one."
        ),
        "undone": N_("Undone. Decide again."),
        "late": N_("This can no longer be undone. Correct it in My activity instead."),
    },
    "day": {
        "corrected": N_("Corrected. The log keeps both decisions."),
        "conflict": N_(
            "The comment has changed since, so your correction was not saved. Ask a lead."
        ),
        "refused": N_("This label cannot be corrected here. Ask a lead."),
    },
    "items": {"corrected": N_("Corrected. The log keeps both decisions.")},
    "lead": {
        "released": N_("Released. The comment is back in the queue."),
        "settled": N_("Resolved."),
        "gone": N_(
            "That comment is not available: someone else has it, or it is already resolved."
        ),
        "back": N_("Released without a decision."),
    },
    "deliveries": {"resent": N_("Queued for delivery.")},
    "admin": {"saved": N_("Saved."), "revoked": N_("Access revoked.")},
    "preferences": {
        "saved": N_("Saved."),
        "described": N_("Saved. Thank you."),
        "wrong": N_("The current password is incorrect. Try again, or ask an admin."),
        "throttled": N_("Too many attempts. Wait 15 minutes, then try again."),
        "unusable": N_("A password must have at least 12 characters. Choose a longer one."),
        # Why a new password is easy to guess.
        "own_name": N_(
            "That password contains your pseudonym. Use four or more unrelated words, or a "
            "password manager."
        ),
        "common": N_(
            "That password is, or resembles, one that many people use. Use four or more unrelated "
            "words, or a password manager."
        ),
        "repeats": N_(
            "That password repeats characters or words. Use four or more unrelated words, or a "
            "password manager."
        ),
        "sequence": N_(
            "That password follows the alphabet or the keyboard. Use four or more unrelated words, "
            "or a password manager."
        ),
        "predictable": N_(
            "That password is easy to guess. Use four or more unrelated words, or a password "
            "manager."
        ),
    },
    "login": {
        "ended": N_("Your session has expired. Sign in again to continue."),
        "changed": N_("Your password was changed. Sign in with the new one."),
        "provider": N_("Sign-in with your organisation failed. Try again, or ask an admin."),
    },
}
