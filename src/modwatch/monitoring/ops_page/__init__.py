"""The page of Modwatch inside Airflow: whether the system is normal, and since when."""
