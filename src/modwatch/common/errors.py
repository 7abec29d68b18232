"""The exceptions of Modwatch.

A message says in one sentence what is wrong, where, and what to do. It never contains the text of a
comment: comments are private, and messages end up in logs.
"""


class ModwatchError(Exception):
    """The base class; catch it to distinguish expected errors from defects."""


class SettingsError(ModwatchError):
    """A setting is invalid; the message names the variable and its range."""


class SourceError(ModwatchError):
    """The source cannot be read; the message names the file or query and what to change."""


class LakeError(ModwatchError):
    """The lake cannot be read or written; check MODWATCH_LAKE and its permissions."""


class CheckError(ModwatchError):
    """A validation cannot run, or its stored result cannot be read; run the task again."""


class DayRejectedError(ModwatchError):
    """The validation of a day failed; open the validation page and correct the source."""


class ModelError(ModwatchError):
    """A model artifact is invalid; train the model or download the artifact again."""


class NoChampionError(ModelError):
    """No model has the alias champion; run `modwatch train` or set the alias in MLflow."""


class DesignError(ModwatchError):
    """A sampling design is invalid; the message names the value and its range."""


class RoutingOutdatedError(DesignError):
    """The day has other scores than it was routed by; this lasts from `check_scores` to `route`."""


class MetricInputError(ModwatchError, ValueError):
    """The arguments of a metric are invalid; the message names the argument and its range."""


class AuditError(ModwatchError):
    """A step of an audit is invalid or out of order; the message names the audit and the reason."""


class AuditCancelledError(AuditError):
    """The audit was cancelled; its evidence is kept, and no further step is possible."""


class LedgerError(ModwatchError):
    """A chain of entries, or a witness of it, is invalid; the message names the place."""


class TimestampError(ModwatchError):
    """A timestamp cannot be obtained, or is not valid; the message has the reason."""


class DsaReportError(ModwatchError):
    """A statement for a transparency report is invalid; the message names the field."""


class TrackingError(ModwatchError):
    """MLflow cannot be reached or rejected a call; check MODWATCH_MLFLOW_URL and the server."""


class AlertError(ModwatchError):
    """An alert could not be delivered and is sent again with the next run; check the channel."""


class AlertRefusedError(AlertError):
    """The receiver rejected an alert permanently; the message contains its response status."""


class IncidentError(ModwatchError):
    """An action on an incident is not possible; `modwatch alerts list` has the active ones."""


class DatabaseError(ModwatchError):
    """PostgreSQL cannot be reached; check MODWATCH_DATABASE_URL and the server."""


class QueueError(ModwatchError):
    """The review queue rejected an operation."""


class ItemNotFoundError(QueueError):
    """The item was withdrawn or never queued; lease the next one."""


class LeaseConflictError(QueueError):
    """The lease has expired, or the item is decided; lease the next one."""


class TooManyLeasesError(QueueError):
    """The person holds as many items as one person may; decide or release some first."""


class TooManyActionsError(QueueError):
    """The person skipped or undid as often as one person may in an hour; decide, or try later."""

    #: Seconds after which it is certainly possible again.
    retry_after = 3600


class WeakPasswordError(QueueError):
    """A new password is easy to guess; use unrelated words, or a password manager."""

    def __init__(self, message: str, *, weakness: str) -> None:
        super().__init__(message)
        #: A key of `people.passwords.WEAKNESSES`.
        self.weakness = weakness


class AccessDeniedError(QueueError):
    """The token is missing or unknown, or its role lacks the permission; ask an admin."""


class CodeRequiredError(AccessDeniedError):
    """The password is right, and the account has a second factor: the code is due."""

    def __init__(self, message: str, *, pending: str) -> None:
        super().__init__(message)
        #: The secret with which this browser sends the code.
        self.pending = pending


class ThrottledError(AccessDeniedError):
    """Too many failed logins; try again after `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StackError(ModwatchError):
    """A process of a stack did not start, or exited; the message names its log."""
