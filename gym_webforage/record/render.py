"""Markdown and reStructuredText made into HTML, for their words and links.

Neither may reach for anything: file insertion and raw directives of
reStructuredText are off, and nothing that a page names is opened.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import Any

ENDINGS = {
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".mkd": "markdown",
    ".rst": "rst",
    ".rest": "rst",
}
"""The markup of a file by its ending."""

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title\s*[:=]\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)
_NAMED = re.compile(r"^(.*?)\s*<([^<>]+)>$", re.DOTALL)
# Roles of Sphinx whose text stands for itself.
_TEXT_ROLES = (
    "ref term func class meth mod attr exc data const obj file option envvar command "
    "program kbd guilabel menuselection abbr samp token keyword index numref any "
    "c:func c:type c:data c:macro py:func py:class py:meth py:mod py:attr py:exc "
    "py:obj py:data download issue pr user source"
).split()
_TEXT_DIRECTIVES = (
    "versionadded versionchanged versionremoved deprecated seealso glossary function "
    "class method attribute data exception module describe option envvar rubric "
    "py:function py:class py:method py:attribute py:data py:exception py:module "
    "c:function c:type c:macro index only tab-set tab-item grid card dropdown"
).split()


def render(body: bytes, markup: str) -> str:
    """Return the HTML of a page in ``markup``, which is markdown or rst."""
    text = body.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    return _markdown(text) if markup == "markdown" else _rst(text)


@cache
def _markdown_parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


def _markdown(text: str) -> str:
    title = ""
    front = _FRONT_MATTER.match(text)
    if front:
        text = text[front.end() :]
        found = _TITLE.search(front.group(2))
        title = f"<title>{escape(found.group(1))}</title>" if found else ""
    return title + _markdown_parser().render(text)


def _rst(text: str) -> str:
    from docutils.core import publish_parts

    _teach_sphinx()
    parts = publish_parts(
        text,
        writer="html5",
        settings_overrides={
            "_disable_config": True,
            "file_insertion_enabled": False,
            "raw_enabled": False,
            "report_level": 5,
            "halt_level": 5,
            "warning_stream": False,
            "embed_stylesheet": False,
            "stylesheet_path": "",
            "math_output": "LaTeX",
            "syntax_highlight": "none",
            "line_length_limit": 1_000_000,
            "section_self_link": False,
        },
    )
    return str(parts["whole"])


@cache
def _teach_sphinx() -> None:
    """Teach docutils how Sphinx pages link, and to read what stands in its blocks."""
    from docutils import nodes
    from docutils.parsers.rst import Directive, directives, roles

    def link(text: str) -> Any:
        named = _NAMED.match(text.strip())
        shown, name = (named.group(1), named.group(2)) if named else (text, text)
        name = name.strip()
        if "://" not in name and not name.endswith((".rst", ".md", ".html")):
            name += ".rst"
        return nodes.reference("", shown.strip() or name, refuri=name)

    class TocTree(Directive):
        has_content = True
        option_spec = None

        def run(self) -> list[Any]:
            shown = nodes.bullet_list()
            for line in self.content:
                line = line.strip()
                if line and not line.startswith(":") and line != "self":
                    paragraph = nodes.paragraph("", "", link(line))
                    shown += nodes.list_item("", paragraph)
            return [shown]

    class Passed(Directive):
        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True

        def run(self) -> list[Any]:
            shown = nodes.container()
            for text in self.arguments:
                found, _ = self.state.inline_text(text, self.lineno)
                shown += nodes.paragraph("", "", *found)
            self.state.nested_parse(self.content, self.content_offset, shown)
            return [shown]

    # docutils calls a role with name, raw text, text, line, inliner and two more.
    def doc(*given: Any) -> Any:
        return [link(given[2])], []

    def plain(*given: Any) -> Any:
        named = _NAMED.match(given[2])
        return [nodes.inline("", named.group(1) if named else given[2])], []

    directives.register_directive("toctree", TocTree)
    for name in _TEXT_DIRECTIVES:
        directives.register_directive(name, Passed)
    roles.register_local_role("doc", doc)
    for name in _TEXT_ROLES:
        roles.register_local_role(name, plain)
