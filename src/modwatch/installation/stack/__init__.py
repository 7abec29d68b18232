"""The processes of an installation on one machine: `modwatch up`, and the demo in its own home.

PostgreSQL, MLflow, the console and Airflow; started, restarted, found again and ended.
"""
