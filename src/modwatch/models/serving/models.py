"""The versions of a model that a server has loaded; one is current."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from modwatch.common.errors import ModwatchError, NoChampionError
from modwatch.models.scoring.scorer import Scorer
from modwatch.models.serving.batching import Batcher, OnBatch

logger = logging.getLogger(__name__)

#: Versions that stay loaded: the current one, and one that a day in progress still needs.
_LOADED = 2


class ServedModel:
    """Loads versions of one model, follows its alias, and scores with any loaded version.

    While another version is loaded, the current one serves; requests that it has accepted are
    answered by it. A request may name a version, which is loaded if it is registered: a day that
    began with a version ends with it, wherever the alias points meanwhile.
    """

    def __init__(
        self,
        name: str,
        *,
        current: Callable[[], str],
        open_version: Callable[[str], Scorer],
        most_waiting: int = 20_000,
        most_characters: int = 20_000_000,
        report: OnBatch = lambda *_: None,
    ) -> None:
        """Prepare; nothing is loaded yet.

        Args:
            name: of the model.
            current: returns the version that the alias names.
            open_version: loads a version.
            most_waiting: texts that may wait for each version.
            most_characters: of the texts that may wait for each version.
            report: called after each batch.
        """
        self.name = name
        self._current, self._open = current, open_version
        self._batcher = partial(
            Batcher, most_waiting=most_waiting, most_characters=most_characters, report=report
        )
        #: By version, the least recently used first.
        self._loaded: dict[str, Batcher] = {}
        #: The current version; None before it is loaded.
        self.version: str | None = None
        self._loading = asyncio.Lock()
        self._retiring: set[asyncio.Task[None]] = set()

    @property
    def versions(self) -> list[str]:
        """The loaded versions, the current one last."""
        return sorted(self._loaded, key=lambda version: version == self.version)

    @property
    def waiting(self) -> int:
        """Texts that wait."""
        return sum(batcher.waiting for batcher in self._loaded.values())

    async def refresh(self) -> None:
        """Load the version that the alias names, and make it current.

        Raises:
            NoChampionError: there is none; the current version stays.
            ModwatchError: it cannot be loaded, or the registry cannot be reached.
        """
        wanted = await asyncio.to_thread(self._current)
        if wanted != self.version:
            await self._load(wanted)
            self.version = wanted
            logger.info(
                "Version %s is served.", wanted, extra={"event": "model_served", "version": wanted}
            )

    async def follow(self, seconds: float) -> None:
        """Refresh for ever, with a pause; what goes wrong is logged, and the current one stays."""
        while True:
            try:
                await self.refresh()
            except ModwatchError as exc:
                logger.error(  # noqa: TRY400 - the message says it all
                    "The model is not refreshed: %s", exc, extra={"event": "model_not_refreshed"}
                )
            except Exception:
                logger.exception(
                    "The model is not refreshed: it failed to load.",
                    extra={"event": "model_not_refreshed"},
                )
            await asyncio.sleep(seconds)

    async def get(self, version: str | None) -> tuple[str, Batcher]:
        """Return a version, loaded if need be, and what scores with it; None: the current one.

        Raises:
            NoChampionError: there is no such version.
            ModwatchError: it cannot be loaded.
        """
        wanted = version or self.version
        if wanted is None:
            raise NoChampionError(f"no version of {self.name} is loaded yet; try again later")
        batcher = self._loaded.get(wanted) or await self._load(wanted)
        self._loaded[wanted] = self._loaded.pop(wanted, batcher)  # used most recently
        return wanted, batcher

    async def close(self) -> None:
        """Wait for the requests that were accepted."""
        await asyncio.gather(
            *(batcher.close() for batcher in self._loaded.values()), *self._retiring
        )

    async def _load(self, version: str) -> Batcher:
        async with self._loading:
            if version in self._loaded:
                return self._loaded[version]
            scorer = await asyncio.to_thread(self._open, version)
            batcher = self._loaded[version] = self._batcher(scorer)
        for old in [name for name in self._loaded if name not in (version, self.version)]:
            if len(self._loaded) > _LOADED:
                # Forgotten; the requests that it has accepted are answered.
                retiring = asyncio.create_task(self._loaded.pop(old).close())
                self._retiring.add(retiring)
                retiring.add_done_callback(self._retiring.discard)
        return batcher
