"""What mkdocs needs to build the pages of docs/ as they are in the repository (mkdocs.yml names this file)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

REPOSITORY = Path(__file__).parents[1]
LINK = re.compile(r"(?<=\]\()(\.\./[^)#\s]+)(#[^)\s]*)?(?=\))")
"""The target of a link that leaves its folder, and the heading within it."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name headings as GitHub does, so that links to them work in both places."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files, **_: Any) -> str:
    """Keep history out of the search; copy files outside of docs/ that a page links to, and link to the copies."""
    if page.file.src_uri.startswith("history/"):
        page.meta["search"] = {"exclude": True}
    folder = Path(page.file.abs_src_path or "").parent

    def target(link: re.Match[str]) -> str:
        path = Path(os.path.normpath(folder / link[1]))
        if path.is_relative_to(config.docs_dir) or not path.is_file():
            return link[0]
        copy = f"repository/{path.relative_to(REPOSITORY).as_posix()}.txt"  # as text: shown, not downloaded or rendered
        if files.get_file_from_path(copy) is None:
            files.append(File.generated(config, copy, abs_src_path=str(path)))
        return Path(os.path.relpath(Path(config.docs_dir) / copy, folder)).as_posix()

    return LINK.sub(target, markdown)
