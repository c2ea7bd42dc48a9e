"""Pages and repeated parts of them by Jinja2, from the ``.html.jinja`` files in a package's folder ``templates``.

Everything that a template writes is escaped unless it is markup already. What has been escaped stays so: a template's
text is markup, and so are the values of ``markup.tag``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from muarl.pages.markup import Html, join

OWN = "muarl.pages"


@cache
def _environment(package: str) -> Environment:
    """``package``: whose templates, beside those of this one."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, OWN))]),
        autoescape=True,
        finalize=join,  # None is nothing, lists are flattened, and characters that nobody sees are shown
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def filled(name: str, package: str = OWN, **values: Any) -> Html:
    """The template NAME.html.jinja with these values."""
    return Html(_environment(package).get_template(f"{name}.html.jinja").render(values))
