"""Each file is one DAG. A wheel holds this folder as the package `modwatch.dags`."""
