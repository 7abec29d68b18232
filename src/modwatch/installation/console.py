"""The review console of this installation, served alone or inside Airflow."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from modwatch.installation.mounted import MountedApplication
from modwatch.settings import Settings

# Airflow loads this module in all its processes, and the console takes 1.5 s to import: functions
# import it when they need it.
if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from modwatch.installation.resources import Resources
    from modwatch.review.console.request_context import ConsoleOptions
    from modwatch.review.outbox.delivery import Deliverer
    from modwatch.review.people.oidc import OidcOptions

#: Path of the console on Airflow's address.
AIRFLOW_PREFIX = "/modwatch"


def serve(
    resources: "Resources",
    *,
    host: str | None = None,
    port: int | None = None,
    came: Sequence[int] = (),
) -> None:
    """Serve the console until a signal, by default at the address in the settings.

    Meanwhile decisions are delivered to the platform if the settings name its webhook, and an
    embedded PostgreSQL is started again when it dies. `came` is from `signals_held`: the console
    ends at once if a signal came before it was ready.
    """
    from modwatch.review.console.app import serve as serve_console

    settings = resources.settings
    address = urlsplit(settings.console_url)
    with ExitStack() as exits:
        if settings.is_embedded:
            from modwatch.review.embedded import kept_running

            exits.enter_context(kept_running(resources.embedded_server))
        exits.enter_context(delivering(resources, settings.console_url))
        serve_console(
            host=host or address.hostname or "127.0.0.1",
            port=port or address.port or 8090,
            engine=resources.database,
            options=_options(resources, settings.console_url),
            came=came,
        )


def _options(resources: "Resources", address: str) -> "ConsoleOptions":
    """Return the console's options, after storing the policy permanently."""
    from modwatch.review.policy.tree import register_policy

    options = console_options(resources, address)
    register_policy(resources.database, options.policy)
    return options


def console_options(resources: "Resources", address: str) -> "ConsoleOptions":
    """Return the options of the console at the public `address`."""
    from modwatch.review.console.request_context import ConsoleOptions
    from modwatch.review.policy.tree import load_policy

    settings = resources.settings
    return ConsoleOptions(
        secure_cookies=urlsplit(address).scheme == "https",
        trusted_proxies=tuple(map(str, settings.trusted_proxies)),
        require_second_factor=settings.require_second_factor,
        show_reasons=settings.show_reasons,
        require_code=settings.require_code,
        policy=load_policy(settings.file("policy.toml")),
        lanes=resources.lanes,
        witness_folder=resources.witness_folder,
        authority=resources.authority,
        oidc=_oidc(settings, address),
    )


def _oidc(settings: Settings, address: str) -> "OidcOptions | None":
    from modwatch.review.people.oidc import OidcOptions

    if settings.oidc_issuer is None:
        return None
    return OidcOptions(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret.get_secret_value(),
        redirect_url=f"{address.rstrip('/')}/oidc/callback",
        role_claim=settings.oidc_role_claim,
        roles=settings.oidc_roles,
    )


class MountedConsole(MountedApplication):
    """The console inside another server."""

    def _create(self, resources: "Resources", exits: ExitStack) -> "ASGIApp":
        from modwatch.review.console.app import create_app

        address = f"{resources.settings.airflow_url.rstrip('/')}{AIRFLOW_PREFIX}"
        app = create_app(resources.database, _options(resources, address))
        exits.enter_context(delivering(resources, address))
        return app


@contextmanager
def delivering(resources: "Resources", address: str) -> Iterator[None]:
    """Follow decision log and queue in the background: for the feed, the webhook, and alerts.

    `address` is that of the console, for links.
    """
    from modwatch.monitoring.incidents.operations import watch_escalations

    stop = threading.Event()
    page = f"{address.rstrip('/')}/lead#escalations"
    watch = partial(watch_escalations, resources.database, resources.alert_channels, page)
    # Daemons, since Airflow ends its server without leaving this block; deliveries resume later.
    work = [
        threading.Thread(target=run, args=(stop,), daemon=True)
        for run in (deliverer(resources).run, watch)
    ]
    for thread in work:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in work:
            thread.join()


def deliverer(resources: "Resources") -> "Deliverer":
    """Return the deliverer of decisions, with the platform's webhook if the settings name one."""
    from modwatch.review.outbox.delivery import PLATFORM, DecisionWebhook, Deliverer
    from modwatch.review.policy.tree import load_policy

    settings, channels = resources.settings, {}
    if settings.decision_webhook_url is not None:
        channels[PLATFORM] = DecisionWebhook(
            url=settings.decision_webhook_url.get_secret_value(),
            secret=settings.decision_webhook_secret.get_secret_value(),
        )
    category = {
        node.code: node.dsa_category for node in load_policy(settings.file("policy.toml")).nodes
    }
    return Deliverer(engine=resources.database, channels=channels, category_of=category.get)
