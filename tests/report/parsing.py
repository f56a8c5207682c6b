"""Reads a page back: its elements, its text, and whatever it would fetch."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_EMPTY = {"meta", "img", "br", "link", "input", "hr", "source"}


class Page(HTMLParser):
    """Elements with their attributes, the text of each table, and errors of nesting."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.tables: list[list[list[str]]] = []
        self.words: list[str] = []
        self.errors: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        self.errors += [f"<{tag}> is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.errors.append(f"</{tag}> closes nothing at line {self.getpos()[0]}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.words.append(data)
        if {"td", "th"} & set(self._open):
            self.tables[-1][-1][-1] += data

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    def table_with(self, *heads: str) -> list[list[str]]:
        """The first table whose head has these columns, its cells on one line each."""
        for table in self.tables:
            rows = [[re.sub(r"\s+", " ", cell).strip() for cell in row] for row in table]
            if all(head in rows[0] for head in heads):
                return rows
        raise AssertionError(f"no table has the columns {heads}")

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def list_fetched(html: str) -> list[str]:
    """Addresses that a browser would ask for by itself: everything but links, data and places on the page."""
    fetched = []
    for tag, attributes in Page(html).elements:
        for name in ("src", "href", "xlink:href", "srcset", "data", "action", "poster"):
            value = attributes.get(name, "")
            if value and not value.startswith(("#", "data:")) and tag != "a":
                fetched.append(value)
    return fetched + re.findall(r"url\((?!#)[^)]*\)|@import[^;]*", html)
