"""The tasks of `train_model`: training, evaluation, the gate, and a person's decision."""

import logging
from typing import Any, ClassVar

from airflow.sdk import task

from modwatch.pipeline.airflow.model_form import recipe_fields
from modwatch.pipeline.airflow.questions import Question, respondent

_log = logging.getLogger(__name__)

PROMOTE, SHADOW, REJECT = "Make it the champion", "Score in shadow as challenger", "Reject"

_DECISIONS = {PROMOTE: "champion", SHADOW: "challenger", REJECT: "rejected"}


@task
def train(params: Any = None, dag_run: Any = None) -> str:
    """Train the model that the form of the run asks for; return its version."""
    from modwatch.installation.resources import (
        open_resources,  # parsing a DAG imports nothing heavy
    )
    from modwatch.models.recipe import Recipe, offline_recipe
    from modwatch.pipeline import model

    fields = recipe_fields(params)
    recipe = (Recipe if "encoder" in fields else offline_recipe)(**fields)
    with open_resources() as resources:
        corpus = model.corpus(resources, params)
        report = model.report(resources, corpus)
        for line in report.lines():
            _log.info("%s", line)
        return model.train(
            resources,
            corpus,
            recipe=recipe,
            seed=params["seed"],
            report=report,
            request=dag_run.run_id,
            progress=lambda line: _log.info("%s", line),
        )


@task
def evaluate(version: str) -> str:
    """Compare the version with the champion on the evaluation data; return the outcome."""
    from modwatch.installation.resources import open_resources
    from modwatch.pipeline import model

    with open_resources() as resources:
        return "passed" if model.evaluate(resources, version).passed else "failed"


@task
def check(version: str) -> str:
    """Refuse a version that is worse than the champion."""
    from modwatch.installation.resources import open_resources
    from modwatch.pipeline import model

    with open_resources() as resources:
        return model.check(resources, version)


class Promotion(Question):
    """Asks whether a version becomes the champion, is scored in shadow first, or is rejected."""

    template_fields: ClassVar = ("subject", "body", "version")

    def __init__(self, *, version: str, **kwargs: Any) -> None:
        super().__init__(
            subject="Promote version",
            options=list(_DECISIONS),
            note="Reason, kept with the version in MLflow. Do not quote comments.",
            **kwargs,
        )
        self.version = version

    def execute(self, context: Any) -> Any:
        """Ask."""
        from modwatch.installation.resources import open_resources
        from modwatch.pipeline import model

        page = self.generate_link_to_ui_from_context(context=context)
        with open_resources() as resources:
            self.body = model.ask(resources, self.version, page=page)
            name = resources.settings.model_name
        self.subject = f"{self.subject} {self.version} of {name}"
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Act on the answer; return the decision."""
        from modwatch.installation.resources import open_resources
        from modwatch.pipeline import model

        answer = super().execute_complete(context, event)
        decision = _DECISIONS[answer["chosen_options"][0]]
        with open_resources() as resources:
            model.decide(resources, self.version, decision, **respondent(answer))  # type: ignore[arg-type]
        return decision
