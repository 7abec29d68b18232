"""The path of a model: from labelled comments to the alias that lets it score.

    report → train → evaluate → check → ask → (a person decides) → decide
    register, set_alias

`train` registers a new version, `register` one that others trained; `evaluate` compares it with the
champion on the same frozen comments; `check` refuses one that is worse; `decide` moves the alias.
The DAG `train_model` takes these steps. `modwatch train` trains and sets an alias without asking;
`modwatch model` registers, and sets aliases by hand.
"""

import datetime
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Literal

from modwatch.common.errors import ModelError, NoChampionError, SettingsError, SourceError
from modwatch.common.installed import plugins

if TYPE_CHECKING:
    from modwatch.data.lake.delta import Lake
    from modwatch.data.sources.labelled import LabelledTexts
    from modwatch.installation.resources import Resources
    from modwatch.models.data_report import DataReport
    from modwatch.models.evaluation import Evaluation, FrozenSet
    from modwatch.models.progress import TrainingProgress
    from modwatch.models.recipe import Recipe

logger = logging.getLogger(__name__)

Decision = Literal["champion", "challenger", "rejected"]

#: The name of the comments that moderators labelled, in place of files.
REVIEWED = "reviewed"

#: Days of the stream that training data is compared with, and most comments of them.
_STREAM_DAYS, _STREAM_COMMENTS = 7, 50_000


def corpus(resources: "Resources", form: Mapping[str, Any]) -> "LabelledTexts":
    """Return the comments that a form names, without those of the evaluation data.

    The form is that of `train_model`, or the options of `modwatch train`; `reviewed` names the
    comments that moderators labelled, and an entry point of `modwatch.training_data` others.

    Raises:
        SettingsError: neither the form nor MODWATCH_TRAINING_DATA names files.
        SourceError: a file cannot be used.
    """
    from modwatch.data.sources.labelled import LabelColumns, read_labelled
    from modwatch.data.sources.values import Vocabulary

    sources = [*map(str, form["data"] or resources.settings.training_data)]
    if not sources:
        raise SettingsError(
            "no training data is set; name files (--data, or in the form), or set "
            "MODWATCH_TRAINING_DATA"
        )
    if sources == [REVIEWED]:
        return without_evaluation(resources, reviewed(resources.lake))
    if len(sources) == 1 and (named := plugins("modwatch.training_data").get(sources[0])):
        return without_evaluation(resources, named.load()())
    columns = LabelColumns(
        text=form["text_column"],
        label=form["label_column"],
        comment_id=form["id_column"],
        language=form.get("language_column"),
        votes=tuple(name for names in form["votes"] or () for name in names.split(",")),
        vocabulary=Vocabulary.of(form.get("value") or ()),
    )
    found = read_labelled(
        sources, columns=columns, query=form.get("query"), encoding=form.get("encoding")
    )
    return without_evaluation(resources, found)


def reviewed(lake: "Lake") -> "LabelledTexts":
    """Return all comments of the lake that moderators labelled.

    Most were chosen by uncertainty: the share of toxic comments in the stream is estimated with the
    inverse of their inclusion probabilities.

    Raises:
        SourceError: there is none.
    """
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    from modwatch.common.account import Account
    from modwatch.data.sources.labelled import LabelledTexts

    found = []
    for day in lake.days("labels"):
        labels = lake.table("labels", day, columns=["comment_id", "label"])
        chances = lake.table("routed", day, columns=["comment_id", "inclusion_probability"])
        labelled = labels.to_pandas().merge(chances.to_pandas())
        wanted = pc.field("comment_id").isin(labels.column("comment_id"))
        for batch in lake.read("comments", day, columns=["comment_id", "text"]):
            texts = pa.Table.from_batches([batch]).filter(wanted).to_pandas()
            found.append(texts.merge(labelled))
    rows = pd.concat(found) if found else pd.DataFrame()
    if rows.empty:
        raise SourceError("moderators labelled no comment yet; name files of labelled comments")
    weights = 1 / rows["inclusion_probability"]
    return LabelledTexts(
        texts=tuple(rows["text"]),
        labels=rows["label"].to_numpy(),
        account=Account.of(len(rows)),
        prevalence=float(np.average(rows["label"], weights=weights)),
    )


def without_evaluation(resources: "Resources", corpus: "LabelledTexts") -> "LabelledTexts":
    """Return the corpus without exact and near duplicates of MODWATCH_EVALUATION_DATA, if set."""
    from modwatch.data.duplicates import near_duplicates

    if resources.settings.evaluation_data is None:
        return corpus
    tested = _frozen(resources).texts
    return corpus.without(near_duplicates(corpus.texts, tested), "in_the_evaluation_data")


def report(resources: "Resources", corpus: "LabelledTexts") -> "DataReport":
    """Return the data report, with the leaks into the newest days of the stream."""
    from modwatch.models.data_report import data_report

    return data_report(
        corpus.texts,
        corpus.labels,
        stream=_stream(resources) or None,
        languages=corpus.languages,
        account=corpus.account,
    )


def train(
    resources: "Resources",
    corpus: "LabelledTexts",
    *,
    recipe: "Recipe",
    seed: int = 0,
    report: "DataReport | None" = None,
    request: str = "",
    progress: "TrainingProgress | None" = None,
) -> str:
    """Train a model on the devices of the settings, register it; return its version.

    An interrupted run of the same corpus, recipe and seed resumes. Its checkpoints are removed at
    the end. A `request` that already has a version returns that one.

    Raises:
        ModelError: the corpus cannot be used, or training failed.
        TrackingError: MLflow cannot be reached.
    """
    from modwatch.models.devices import devices_of
    from modwatch.models.reference import INVENTED
    from modwatch.models.registration import train_and_register
    from modwatch.models.training import run_digest

    settings = resources.settings
    if recipe.expected_prevalence is None:
        recipe = replace(recipe, expected_prevalence=corpus.prevalence)
    if request and (made := resources.registry.version_of_request(request)) is not None:
        return made
    labels = corpus.labels.tolist()
    folder = settings.home / "training" / run_digest(corpus.texts, labels, recipe, seed)
    version = train_and_register(
        corpus.texts,
        labels,
        registry=resources.registry,
        recipe=recipe,
        devices=devices_of(settings.device),
        checkpoints=folder,
        seed=seed,
        report=report,
        origin=INVENTED if corpus.invented else "",
        request=request,
        progress=progress,
    )
    shutil.rmtree(folder)
    return version


def register(
    resources: "Resources",
    model: str,
    *,
    threshold: float | None = None,
    positive_class: str | None = None,
) -> str:
    """Register a classifier of others as it is; return its version.

    Arguments and errors are those of `models.registration.register_foreign`.
    """
    from modwatch.models.registration import register_foreign

    return register_foreign(
        model, registry=resources.registry, threshold=threshold, positive_class=positive_class
    )


def evaluate(resources: "Resources", version: str) -> "Evaluation":
    """Compare a version with the champion on the evaluation data, and store the result in MLflow.

    Without a champion, or if the version is the champion, there is nothing to compare with.

    Raises:
        SettingsError: MODWATCH_EVALUATION_DATA is not set.
        SourceError: its file cannot be used.
        ModelError: a model cannot be loaded, or fails.
        TrackingError: MLflow cannot be reached.
    """
    from modwatch.models.evaluation import evaluation
    from modwatch.statistics.collaboration.model_comparison import ScoredByModel

    policy, frozen = resources.policy, _frozen(resources)

    def scored(number: str) -> ScoredByModel:
        scorer = resources.scorer(number)
        found = scorer.score(frozen.texts)
        return ScoredByModel(prob=found.prob, threshold=scorer.threshold, columns=found.further)

    champion = _champion(resources)
    made = evaluation(
        frozen,
        version,
        scored(version),
        champion=None if champion in (None, version) else (champion, scored(champion)),
        strategy=policy.strategy,
        review_fraction=policy.review_fraction,
    )
    resources.registry.log_evaluation(version, asdict(made), passed=made.passed)
    return made


def check(resources: "Resources", version: str) -> str:
    """Return the outcome of a version's evaluation, `passed`.

    Raises:
        ModelError: the version is worse than the champion, or was not evaluated.
    """
    made = _evaluation(resources, version)
    if not made.passed:
        raise ModelError(
            f"version {version} is worse than champion {made.champion} in "
            f"{', '.join(made.worse)}; its run in MLflow has the evaluation. It gets no alias"
        )
    return "passed"


def ask(resources: "Resources", version: str, *, page: str) -> str:
    """Notify people once that a version waits for a decision; return what to decide on.

    `page` is where the answer is given; the text returned is Markdown.
    """
    from modwatch.monitoring.incidents.delivery import notify
    from modwatch.monitoring.incidents.messages.alert import promotion_alert

    alert = promotion_alert(resources.registry.name, version, page)
    today = datetime.datetime.now(datetime.UTC).date()
    notify(resources.database, resources.alert_channels, alert, today, topic="model")
    return _evaluation(resources, version).describe()


def decide(
    resources: "Resources", version: str, decision: Decision, *, actor: str, note: str = ""
) -> None:
    """Set the alias of an evaluated version, if it was not rejected, and record the decision.

    Raises:
        ModelError: it was evaluated against another champion than there is now.
        TrackingError: MLflow cannot be reached.
    """
    now, compared = _champion(resources), _evaluation(resources, version).champion
    if decision == "champion" and now not in (compared, version):
        raise ModelError(
            f"version {version} was compared with champion {compared or 'none'}, but the champion "
            f"is version {now} now; clear `evaluate` to compare it with that one"
        )
    if decision != "rejected":
        resources.registry.set_alias(version, decision)
    moment = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    record = {"decision": decision, "decided_by": actor, "decided_at": moment, "note": note}
    resources.registry.record_decision(version, record)


def set_alias(resources: "Resources", version: str, alias: str) -> str:
    """Set the alias champion or challenger of a version; return the version.

    It may be `previous`: the champion before this one.

    Raises:
        NoChampionError: there is no previous champion.
        ModelError: it was trained elsewhere, and cannot be scored with here.
        TrackingError: MLflow cannot be reached, or the version does not exist.
    """
    from modwatch.models.registry import PREVIOUS

    if version == PREVIOUS:
        version = resources.registry.previous_version()
    if resources.settings.scorer == "local" and not resources.registry.trained_here(version):
        resources.local_scorer(version)
    resources.registry.set_alias(version, alias)
    return version


def _champion(resources: "Resources") -> str | None:
    try:
        return resources.registry.champion_version()
    except NoChampionError:
        return None


def _evaluation(resources: "Resources", version: str) -> "Evaluation":
    from modwatch.models.evaluation import Evaluation

    return Evaluation(**resources.registry.read_evaluation(version))


def _frozen(resources: "Resources") -> "FrozenSet":
    """Return the evaluation data: columns text, label and, if there is one, groups."""
    from modwatch.data.sources.labelled import LabelColumns, read_labelled
    from modwatch.models.evaluation import FrozenSet

    path = resources.settings.evaluation_data
    if path is None:
        raise SettingsError(
            "MODWATCH_EVALUATION_DATA is not set; name a file of labelled comments (columns text "
            "and label) that no model is trained on"
        )
    found = read_labelled([path], columns=LabelColumns(groups="groups"))
    if found.account.left_out:
        logger.warning(
            "Rows of MODWATCH_EVALUATION_DATA could not be used: %s.",
            found.account.faults({}),
            extra={"event": "evaluation_rows_left_out", "left_out": found.account.left_out},
        )
    return FrozenSet(
        texts=found.texts,
        label=(found.labels > 0.5).astype("int8"),
        groups=found.groups if any(found.groups) else None,
    )


def _stream(resources: "Resources") -> Sequence[str]:
    """Return comments of the newest days of the lake."""
    lake = resources.lake
    texts: list[str] = []
    for day in sorted(lake.days("comments"), reverse=True)[:_STREAM_DAYS]:
        for batch in lake.read("comments", day, columns=["text"]):
            texts += batch.column("text").to_pylist()
        if len(texts) >= _STREAM_COMMENTS:
            break
    return texts[:_STREAM_COMMENTS]
