"""What pyproject.toml cannot say: `dags/` and `plugins/` travel in the package, too."""

from setuptools import find_namespace_packages, setup

setup(
    packages=[*find_namespace_packages("src"), "modwatch.dags", "modwatch.plugins"],
    package_dir={"": "src", "modwatch.dags": "dags", "modwatch.plugins": "plugins"},
)
