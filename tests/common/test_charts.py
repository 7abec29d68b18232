import io

import matplotlib.image as mpl_image
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from modwatch.common.charts import DPI, png, shortened


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
