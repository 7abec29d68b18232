"""The history of the review tables; `migrate.upgrade` applies it."""
