"""What goes wrong with what is stated, not with a file that is read: that becomes findings."""

from modwatch.errors import ModwatchError


class DsaReportError(ModwatchError):
    """A statement for a transparency report is impossible; the message names the field."""
