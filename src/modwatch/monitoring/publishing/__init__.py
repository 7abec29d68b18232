"""What Modwatch writes to MLflow: a run per day, and a timeline over the days.

The entry points are `publish_day` of `runs` and `publish_timeline` of `timeline`.
Importing this package, or any module of it except `figures`, imports neither mlflow nor matplotlib:
both take seconds, and a DAG file must be parsed in less.
"""
