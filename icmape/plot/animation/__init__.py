"""An episode as an animated SVG, without a script: for pages that show pictures only, such as a README."""

from icmape.plot.animation.scene import animated

__all__ = ["animated"]
