-- One database and one role for each program, so that none can read another's. PostgreSQL runs this
-- once, when its volume is empty. The passwords come from the environment of the server.

\set ON_ERROR_STOP on
\getenv review_owner_password REVIEW_DB_OWNER_PASSWORD
\getenv review_password REVIEW_DB_PASSWORD
\getenv airflow_password AIRFLOW_DB_PASSWORD
\getenv mlflow_password MLFLOW_DB_PASSWORD

-- The owner of the review tables migrates them, and gives the application what it needs.
CREATE ROLE modwatch_owner LOGIN PASSWORD :'review_owner_password';
CREATE ROLE modwatch LOGIN PASSWORD :'review_password';
CREATE ROLE airflow LOGIN PASSWORD :'airflow_password';
CREATE ROLE mlflow LOGIN PASSWORD :'mlflow_password';

CREATE DATABASE modwatch OWNER modwatch_owner;
CREATE DATABASE airflow OWNER airflow;
CREATE DATABASE mlflow OWNER mlflow;

REVOKE ALL ON DATABASE modwatch, airflow, mlflow, postgres, template1 FROM PUBLIC;
