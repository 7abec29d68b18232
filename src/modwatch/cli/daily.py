"""`modwatch run`, `repair`, `retention`, `plan`: what the DAGs do every day, and label plans."""

import datetime
import getpass
from typing import TYPE_CHECKING

import click

from modwatch.cli.arguments import day, number_between, with_resources
from modwatch.common import days
from modwatch.pipeline import daily

if TYPE_CHECKING:
    import pandas as pd

    from modwatch.installation.resources import Resources

_STEPS = {step.__name__: step for step in daily.STEPS}
#: The steps of `modwatch run day`.
_DAY = tuple(_STEPS)[: list(_STEPS).index("collect_labels")]

_day = click.argument("of_day", metavar="DAY", type=day, help="YYYY-MM-DD, UTC.")


@click.command()
@click.argument("step", type=click.Choice([*_STEPS, "day"]))
@_day
@click.option(
    "--allow-empty", is_flag=True, help="Empty a day whose rows are no longer in the source."
)
@with_resources
def run(resources: "Resources", *, step: str, of_day: datetime.date, allow_empty: bool) -> None:
    """Run one step of the daily job for a day, or all up to `score_challenger` (`day`)."""
    days.require_possible(of_day, resources.settings.first_day)
    for name in _DAY if step == "day" else (step,):
        options = {"allow_empty": True} if allow_empty and name == "ingest" else {}
        print(f"{name}: {_STEPS[name](resources, of_day, **options)}")


@click.command()
@_day
@click.option("--by", metavar="NAME", help="Person who acts; default: the user of the system.")
@click.option("--empty", is_flag=True, help="Declare that the day has no comments.")
@with_resources
def repair(resources: "Resources", *, of_day: datetime.date, by: str | None, empty: bool) -> None:
    """Run a day again in Airflow: read its source, and all that follows."""
    from modwatch.installation.stack.installation import inside_airflow
    from modwatch.monitoring.incidents import actions

    days.require_possible(of_day, resources.settings.first_day)
    person = by or getpass.getuser()
    with inside_airflow(resources.settings):
        from modwatch.installation.day_runs import repair_day

        print(actions.repair(resources.database, of_day, person, run=repair_day, empty=empty))


@click.command()
@click.option("--dry-run", is_flag=True, help="Remove nothing.")
@with_resources
def retention(resources: "Resources", *, dry_run: bool) -> None:
    """Remove what is older than MODWATCH_KEEP_…, and list it with what is kept although old."""
    from modwatch.pipeline.retention import STEPS

    (yesterday,) = days.before(datetime.datetime.now(datetime.UTC).date(), 1)
    for step in STEPS:
        for line in step(resources, yesterday, dry_run=dry_run):
            print(line)


@click.command()
@click.argument("of_day", metavar="DAY", type=day, help="Last day of the window, YYYY-MM-DD, UTC.")
@click.option(
    "--width",
    type=number_between(0, 1),
    multiple=True,
    help="Width of the interval; may be repeated.",
)
@click.option(
    "--budget",
    type=float,
    metavar="LABELS",
    help="Instead of widths: labels of slice and confirmations together, in the whole window.",
)
@click.option(
    "--error-rates",
    type=float,
    nargs=2,
    metavar="FALSE_POSITIVE FALSE_NEGATIVE",
    help="Error rates of one label; default: those estimated from the window.",
)
@with_resources
def plan(
    resources: "Resources",
    *,
    of_day: datetime.date,
    width: tuple[float, ...],
    budget: float | None,
    error_rates: tuple[float, float] | None,
) -> None:
    """Print how to split labels between the random slice and confirmations."""
    found = daily.plan_labels(
        resources, of_day, widths=width, budget=budget, error_rates=error_rates
    )
    if found.empty:
        print("no metric of the window has an interval yet; wait for labels")
    else:
        print(plan_table(found, lacking="too many" if budget is None else "too few"))


def plan_table(plan: "pd.DataFrame", *, lacking: str) -> str:
    """Return the splits as text, `lacking` for the labels where there is none."""
    counts = {
        name: plan[name].astype("string").fillna(lacking)
        for name in ("labels", "confirmations", "total")
    }
    # Nullable ones would be <NA>.
    shares = {
        name: plan[name].astype("float64")
        for name in ("width", "slice_share", "confirmation_share")
    }
    text = plan.assign(**counts, **shares)
    return text.to_string(index=False, float_format="{:.3f}".format, na_rep="")
