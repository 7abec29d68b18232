"""Messages that a page shows after a redirect, by the first part of its path and `?notice=`."""

from collections.abc import Mapping

from modwatch.review.console.i18n import N_

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
        "unusable": N_("Choose a longer password that is harder to guess."),
    },
    "login": {
        "ended": N_("Your session has expired. Sign in again to continue."),
        "changed": N_("Your password was changed. Sign in with the new one."),
        "provider": N_("Sign-in with your organisation failed. Try again, or ask an admin."),
    },
}
