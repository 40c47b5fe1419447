"""Whether built pages load anything from a network: python -m tools.check_offline FOLDER. Links are allowed."""

import re
import sys
from pathlib import Path

LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|object|embed)\b[^>]*?\b(?:src|data|srcset)\s*=\s*["']?(?:https?:)?//[^\s"'>]+"""
    r"""|<link\b[^>]*?\bhref\s*=\s*["']?(?:https?:)?//[^\s"'>]+""",
    re.IGNORECASE,
)
STYLED = re.compile(r"""@import\s+["'](?:https?:)?//[^"']+|url\(\s*["']?(?:https?:)?//[^)]+""", re.IGNORECASE)


def remote(text: str) -> list[str]:
    """Scripts, styles, fonts and pictures that a page or a style sheet loads from another host."""
    return LOADED.findall(text) + STYLED.findall(text)


def main() -> None:
    """The command; exit code 1 if a page or a style sheet loads something from another host."""
    (folder,) = sys.argv[1:]
    files = [path for path in Path(folder).rglob("*") if path.suffix in (".html", ".css", ".svg")]
    found = [f"{path}: {what}" for path in files for what in remote(path.read_text(encoding="utf-8"))]
    print("\n".join(found) or f"{len(files)} pages, style sheets and pictures load nothing from a network")
    sys.exit(bool(found) or not files)


if __name__ == "__main__":
    main()
