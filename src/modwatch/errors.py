"""Every error that Modwatch raises on purpose.

    ModwatchError
    ├── SettingsError        a setting, or a combination of settings, is impossible
    ├── SourceError          the source of comments cannot be read
    ├── LakeError            a table in the lake cannot be read or written
    ├── CheckError           a check could not be carried out, or its stored result not read
    ├── DayRejectedError     a critical rule of the day failed; nothing of it was published
    ├── ModelError           a model artifact is broken, or does not fit
    │   └── NoChampionError  no model is registered under the champion alias
    ├── DesignError          a routing design is impossible (α outside (0, 1], unknown strategy)
    ├── MetricInputError     arrays handed to a statistic do not fit (also a ValueError)
    ├── AuditError           a step of an audit is impossible, or out of order
    │   └── AuditCancelledError  the audit was cancelled
    ├── DsaReportError       a statement for a transparency report is invalid
    ├── TrackingError        MLflow cannot be reached or refused a call
    ├── AlertError           an alert could not be delivered
    │   └── AlertRefusedError    the receiver does not want it, now or later
    ├── DatabaseError        PostgreSQL cannot be reached
    ├── QueueError           the review queue refused an operation
    │   ├── ItemNotFoundError
    │   ├── LeaseConflictError   the lease is held by another person, expired or already used
    │   └── AccessDeniedError    no token, an unknown token, or a role that may not
    │       └── ThrottledError   too many attempts to log in failed
    └── StackError           a process of the demo did not start, or died

A message names the thing, the place and the remedy, in one sentence. The text of a comment never
stands in a message: comments are private, and messages travel to logs.
"""


class ModwatchError(Exception):
    """The root; catch it to tell a refusal of Modwatch from a defect."""


class SettingsError(ModwatchError):
    """A setting is impossible; the message names the variable and what it may be."""


class SourceError(ModwatchError):
    """The source cannot be read; the message names the file or query and what to change."""


class LakeError(ModwatchError):
    """A table of the lake cannot be read or written; check MODWATCH_LAKE and its permissions."""


class CheckError(ModwatchError):
    """A check could not be carried out, or its stored result not read; run the check again."""


class DayRejectedError(ModwatchError):
    """A critical rule of the day failed; open the check page, mend the source, run it again."""


class ModelError(ModwatchError):
    """A model artifact is broken or does not fit its configuration; train or fetch it again."""


class NoChampionError(ModelError):
    """No model carries the champion alias; run `modwatch train` or set the alias in MLflow."""


class DesignError(ModwatchError):
    """A routing design is impossible; the message names the value and its range."""


class MetricInputError(ModwatchError, ValueError):
    """Arrays handed to a statistic do not fit; the message names the argument and its range."""


class AuditError(ModwatchError):
    """A step of an audit is impossible or out of order; the message names the audit and why."""


class AuditCancelledError(AuditError):
    """The audit was cancelled; its evidence is kept, and no further step is possible."""


class DsaReportError(ModwatchError):
    """A statement for a transparency report is invalid; the message names the field."""


class TrackingError(ModwatchError):
    """MLflow cannot be reached or refused; check MODWATCH_MLFLOW_URL and the server."""


class AlertError(ModwatchError):
    """An alert could not be delivered; it is kept, and sent with the next run. Mend the channel."""


class AlertRefusedError(AlertError):
    """The receiver refuses an alert for good; the message says which answer it gave."""


class DatabaseError(ModwatchError):
    """PostgreSQL cannot be reached; check MODWATCH_DATABASE_URL and the server."""


class QueueError(ModwatchError):
    """The review queue refused an operation."""


class ItemNotFoundError(QueueError):
    """No such item; it was withdrawn or never queued. Lease the next one."""


class LeaseConflictError(QueueError):
    """The lease is not yours any more: expired, or the item is decided. Lease the next one."""


class AccessDeniedError(QueueError):
    """No token, an unknown one, or one whose role may not do this; ask an admin for a token."""


class ThrottledError(AccessDeniedError):
    """Too many attempts to log in failed; try again after `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StackError(ModwatchError):
    """A process of the demo did not start or died; the message names its log."""
