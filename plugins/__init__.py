"""What Airflow loads. A wheel holds this folder as the package `modwatch.plugins`."""
