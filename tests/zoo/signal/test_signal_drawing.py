"""Signs in pictures of source localization mean what they mean on pages: a ring is hidden, a star was registered."""

import jax
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from icmape.zoo.signal.signal import Signal
from icmape.zoo.signal.signal_drawing import DISTRACTOR, SOURCE, field_figure


def marks(figure: Figure) -> list[tuple[str, str, float, float, bool]]:
    """Marker, colour and place of single marks, and whether they are hollow."""
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    return [
        (
            str(line.get_marker()),
            to_hex(line.get_color()),
            float(line.get_xdata()[0]),
            float(line.get_ydata()[0]),
            str(line.get_markerfacecolor()) == "none",
        )
        for line in lines
    ]


def test_source_and_distractor_are_rings_where_they_are() -> None:
    problem = Signal(grid=10, window=5, move=5, distance=4, horizon=6)
    world = problem.sample(key=jax.random.key(3))
    places = [divmod(int(cell), problem.grid) for cell in (world.hypothesis, world.distractor)]
    expected = [
        ("o", colour.lower(), float(column), float(row), True)
        for colour, (row, column) in zip((SOURCE, DISTRACTOR), places, strict=True)
    ]
    assert marks(field_figure(problem, world, jax.random.key(0))) == expected
