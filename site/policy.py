"""What a page of the site may load and run, said in the page itself.

The page is served by hosts that send no headers of ours, so the policy is an element in
its head. Scripts come from the site's own files; of those inside a page, Sphinx and its
theme put some there, each may run by the hash of its text, and no other may.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "worker-src": "'self'",
    "connect-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",  # MathJax's, and those of drawings and tables
    "img-src": "'self' data:",
    "font-src": "'self'",
    "form-action": "'self'",  # the search
    "base-uri": "'none'",
}
"""Python runs in a worker, which has a policy of its own: none, without a header."""

HEAD = '<meta charset="utf-8"'
INLINE = re.compile(
    r"<script(?![^>]*\b(?:src=|type=\"application/json\"))[^>]*>(.*?)</script>", re.S
)


def add_policies(site: Path) -> None:
    """Put the policy into every page."""
    for path in site.rglob("*.html"):
        page = path.read_text("utf-8")
        before, head, after = page.partition(HEAD)
        if not head:
            raise ValueError(f"{path}: no {HEAD} to put the policy before")
        path.write_text(f"{before}{policy(page)}{head}{after}", "utf-8")


def policy(page: str) -> str:
    """The element that says what this page may do."""
    hashes = sorted({f" 'sha256-{_hash(script)}'" for script in INLINE.findall(page)})
    rules = POLICY | {"script-src": POLICY["script-src"] + "".join(hashes)}
    content = "; ".join(f"{name} {sources}" for name, sources in rules.items())
    return f'<meta http-equiv="Content-Security-Policy" content="{content}">'


def _hash(script: str) -> str:
    return b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")
