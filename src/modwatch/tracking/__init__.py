"""What is kept in MLflow: one run a day, one timeline, their figures and tables.

`runs.publish_day` and `timeline.publish_timeline` are the way in. Importing this package, or any
module of it but `figures`, imports neither mlflow nor matplotlib: both take seconds, and a DAG
file must parse in less.
"""
