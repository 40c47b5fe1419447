"""What a built page loads from another host is found; links for readers are not."""

import pytest

from tools.check_offline import remote


@pytest.mark.parametrize(
    "text",
    [
        '<script async src="https://example.org/x.js"></script>',
        "<script src=//example.org/x.js></script>",
        '<link rel="stylesheet"\n href="http://example.org/x.css">',
        '<img alt="a" src="https://example.org/x.png">',
        '@import "https://example.org/x.css";',
        "@font-face { src: url(https://example.org/x.woff2) }",
        "a { background: url('//example.org/x.png') }",
    ],
)
def test_what_is_loaded_from_another_host_is_found(text: str) -> None:
    assert len(remote(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://example.org/">a</a>',
        '<script src="../_static/x.js"></script>',
        '<link rel="icon" href="x.svg">',
        '<svg xmlns="http://www.w3.org/2000/svg"></svg>',
        "a { background: url(data:image/png;base64,AA//) }",
    ],
)
def test_links_and_local_files_are_none(text: str) -> None:
    assert remote(text) == []
