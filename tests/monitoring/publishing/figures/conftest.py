"""Reading what a figure shows."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure


@pytest.fixture
def curves() -> Callable[[Figure, int], dict[str, np.ndarray]]:
    """Return (N, 2) of every curve with error bars of a panel, by its label."""

    def of(figure: Figure, panel: int) -> dict[str, np.ndarray]:
        bars = figure.axes[panel].containers
        return {
            bar.get_label(): np.column_stack(bar.lines[0].get_data()).astype(float) for bar in bars
        }

    return of


@pytest.fixture
def words() -> Callable[[Figure], str]:
    """Return all that is written in a figure, but ticks and legends."""

    def of(figure: Figure) -> str:
        texts = [text.get_text() for axes in figure.axes for text in axes.texts]
        titles = [axes.get_title(loc="left") for axes in figure.axes]
        labels = [axes.get_xlabel() for axes in figure.axes]
        return "\n".join([figure.get_suptitle(), *titles, *labels, *texts])

    return of


@pytest.fixture
def draw() -> Callable[[Figure], bytes]:
    """Draw a figure as MLflow gets it, only smaller."""

    def png(figure: Figure) -> bytes:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=20)
        return buffer.getvalue()

    return png
