"""What leads, auditors, ops and admins work with, beside the desk where everybody reviews."""

from modwatch.review.console.api import admin as api_admin
from modwatch.review.console.api import decisions as api_decisions
from modwatch.review.console.api import lead as api_lead
from modwatch.review.console.pages import (
    admin,
    admin_records,
    lead,
    lead_close,
    lead_settle,
    search,
)

#: In the order in which they are documented.
ROUTERS = (
    api_lead.router,
    api_decisions.router,
    api_admin.router,
    lead.router,
    lead_settle.router,
    lead_close.router,
    search.router,
    admin.router,
    admin_records.router,
)
