"""What Modwatch writes to MLflow: a run per day and per audit, and a timeline over the days.

The entry points are `runs.publish_day`, `timeline.publish_timeline` and `audit_runs.publish_audit`.
Importing this package, or any module of it except `figures`, imports neither mlflow nor matplotlib:
both take seconds, and a DAG file must be parsed in less.
"""
