"""`train_model`: its form, and its tasks: training, evaluation, the gate, a person's decision."""

import logging
from functools import partial
from typing import Any, ClassVar

from airflow.sdk import Param, task

from modwatch.installation import open_resources
from modwatch.pipeline import model
from modwatch.pipeline.airflow.questions import Question, field, respondent

_log = logging.getLogger(__name__)

PROMOTE, SHADOW, REJECT = "Make it the champion", "Score in shadow as challenger", "Reject"

_DECISIONS = {PROMOTE: "champion", SHADOW: "challenger", REJECT: "rejected"}


_data = partial(field, section="Data")
_list = partial(_data, "array", default=[], items={"type": "string"})

FORM: dict[str, Param] = {
    "recipe": field(
        "string",
        "Recipe",
        'TOML with fields of the recipe, such as `encoder = "NAME"` and '
        "`expected_prevalence = 0.01`. Default: a small model, trained from scratch in seconds.",
        format="multiline",
        maxLength=10_000,
    ),
    "seed": field("integer", "Seed", default=0, minimum=0),
    "data": _list(
        "Files",
        "CSV, TSV, JSON lines or Parquet files of labelled comments, one a line; or `reviewed`: "
        "what your moderators labelled. "
        "Default: MODWATCH_TRAINING_DATA. For a database use `modwatch train`.",
    ),
    "text_column": _data("string", "Text column", default="text"),
    "label_column": _data(
        "string",
        "Label column",
        "0, 1, the share of annotators who labelled toxic, or a list of votes.",
        default="label",
    ),
    "id_column": _data(
        "string",
        "Id column",
        "Rows with the same id are votes on one comment. Default: each row is one.",
    ),
    "value": _list(
        "Labels that are words",
        "`WORD=toxic` or `WORD=other`, one a line; all must be named. `WORD=abstain`: of people "
        "who did not judge; `WORD=missing`: for no label besides `NA` and `null`.",
    ),
    "votes": _list("Vote columns", "Columns of single votes, one a line. Default: Label column."),
    "encoding": _data("string", "Encoding of text files, as cp1252"),
}


@task
def train(params: Any = None, dag_run: Any = None) -> str:
    """Train the model that the form of the run asks for; return its version."""
    from modwatch.models.progress import TrainingProgress
    from modwatch.models.recipe import parse_recipe

    recipe = parse_recipe(params["recipe"] or "", origin="the recipe of the form")
    say = partial(_log.info, "%s")
    with open_resources() as resources, TrainingProgress(say) as progress:
        with progress.phase("reading"):
            corpus = model.corpus(resources, params)
        with progress.phase("data report"):
            report = model.report(resources, corpus)
        for line in report.lines():
            progress.say(line)
        return model.train(
            resources,
            corpus,
            recipe=recipe,
            seed=params["seed"],
            report=report,
            request=dag_run.run_id,
            progress=progress,
        )


@task
def evaluate(version: str) -> str:
    """Compare the version with the champion on the evaluation data; return the outcome."""
    with open_resources() as resources:
        return "passed" if model.evaluate(resources, version).passed else "failed"


@task
def check(version: str) -> str:
    """Refuse a version that is worse than the champion."""
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
        page = self.generate_link_to_ui_from_context(context=context)
        with open_resources() as resources:
            self.body = model.ask(resources, self.version, page=page)
            name = resources.registry.name
        self.subject = f"{self.subject} {self.version} of {name}"
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Act on the answer; return the decision."""
        answer = super().execute_complete(context, event)
        decision = _DECISIONS[answer["chosen_options"][0]]
        with open_resources() as resources:
            model.decide(resources, self.version, decision, **respondent(answer))  # type: ignore[arg-type]
        return decision
