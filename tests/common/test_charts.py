import io
from datetime import date, timedelta

import matplotlib.image as mpl_image
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from modwatch.common.charts import DPI, day_axis, png, shortened


@pytest.mark.parametrize("count", [1, 2, 14, 61])
def test_the_last_day_is_always_labelled_and_labels_are_few(count):
    axes = Figure().subplots()
    days = [date(2026, 1, 5) + timedelta(days=n) for n in range(count)]
    day_axis(axes, days)
    labels = {
        place: label.get_text()
        for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    }
    assert labels[count - 1] == f"{days[-1]:%d %b}"
    assert len(labels) <= 8


@given(st.text(max_size=80), st.integers(3, 40))
def test_a_shortened_name_is_short(name, width):
    assert len(shortened(name, width)) <= width
    if len(name) <= width:
        assert shortened(name, width) == name


def test_a_figure_is_drawn_once_with_the_pixels_of_savefig():
    def chart() -> Figure:
        figure = Figure(figsize=(6, 4), layout="constrained")
        for axes in figure.subplots(2, 2).flat:
            axes.plot([1, 3, 2], label="a line")
            axes.set(title="a title", xlabel="a label\nof two lines")
            axes.legend()
        return figure

    saved = io.BytesIO()
    chart().savefig(saved, format="png", dpi=DPI)
    once = io.BytesIO(png(chart()))
    assert np.array_equal(mpl_image.imread(once), mpl_image.imread(io.BytesIO(saved.getvalue())))
