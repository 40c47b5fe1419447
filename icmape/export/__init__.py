"""Teams in other runtimes: ONNX, JavaScript, and agents that need NumPy only; each checked against JAX."""

from icmape.export.formats import FORMATS, export

__all__ = ["FORMATS", "export"]
