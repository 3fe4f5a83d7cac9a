"""The words of a recording: the vocabulary chosen, and all texts in numbers of it."""

from __future__ import annotations

import numpy as np

from gym_webforage.record.builder import Contents, joined, offsets
from gym_webforage.record.rows import BLOCK, Rows, distinct_rows, filtered, taken


class Texts:
    """The words of all contents, first as found, then as numbers of the vocabulary."""

    def __init__(self, contents: Contents) -> None:
        self.words = list(contents.words)
        self.numbers = contents.words
        self.has_text = joined(contents.has_text).astype(np.bool_)
        self.title = contents.title.joined()
        self.body = contents.body.joined()
        self.counts = joined(contents.counts)
        contents.counts = []
        self.anchor = contents.anchor.joined()
        self.near = contents.near.joined()
        self.tag_paths = list(contents.tag_paths)
        self.tag_path = joined(contents.tag_path)
        contents.tag_path = []
        self.place = np.zeros(0, np.int32)

    def has_words(self, words: list[str]) -> np.ndarray:
        """Say of each content whether its text has all of ``words``."""
        numbers = {self.numbers.get(word, -1) for word in words}
        start, values = self.body
        owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
        found = owner[np.isin(values, list(numbers))]
        return np.bincount(found, minlength=len(start) - 1) == len(numbers)

    def choose_words(self, url_words: list[list[str]], most: int) -> list[str]:
        """Choose the words on most pages and in most URLs; ties go by alphabet."""
        often: np.ndarray = np.bincount(self.body[1], minlength=len(self.words))
        extra: dict[str, int] = {}
        for row in url_words:
            for word in set(row):
                number = self.numbers.get(word)
                if number is None:
                    extra[word] = extra.get(word, 0) + 1
                else:
                    often[number] += 1
        for word in extra:  # words of URLs only
            self.numbers[word] = len(self.words)
            self.words.append(word)
        often = np.concatenate([often, np.fromiter(extra.values(), np.int64)])
        alphabet = np.argsort(np.array(self.words, dtype=object), kind="stable")
        rank = np.empty(len(self.words), np.int64)
        rank[alphabet] = np.arange(len(rank))
        chosen = np.lexsort((rank, -often))[:most]
        self.place = np.full(len(self.words), -1, np.int32)
        self.place[chosen] = np.arange(len(chosen), dtype=np.int32)
        return [self.words[i] for i in chosen]

    def _placed(self, rows: Rows) -> Rows:
        """Return rows in numbers of the vocabulary, without what is not in it."""
        values = self.place[rows[1]]
        start, which = filtered(rows[0], values >= 0)
        return start, values[which]

    def url_tokens(self, url_words: list[list[str]]) -> dict[str, np.ndarray]:
        """Return the columns of the words of URLs."""
        start = offsets(np.fromiter(map(len, url_words), np.int64, len(url_words)))
        flat = [self.numbers[word] for row in url_words for word in row]
        start, token = self._placed((start, np.array(flat, np.int32)))
        return {"url_token_start": start, "url_token": token}

    def link_texts(self, links: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns of the link texts of ``links``, equal ones stored once.

        From then on ``tag_paths`` has only those that are used.
        """
        parts = {"anchor": self._placed(self.anchor), "near": self._placed(self.near)}
        of_link = np.full(len(self.anchor[0]) - 1, -1, np.int32)
        has_words = np.diff(parts["anchor"][0]) + np.diff(parts["near"][0]) > 0
        path = np.arange(len(of_link) + 1), self.tag_path
        links = links[(has_words | (self.tag_path >= 0))[links]]
        first, same_as = distinct_rows([*parts.values(), path], links)
        of_link[links] = same_as
        columns: dict[str, np.ndarray] = {"of_link": of_link}
        for name, (start, values) in parts.items():
            start, which = taken(start, first)
            columns[f"{name}_start"], columns[f"{name}_token"] = start, values[which]
        used = np.unique(self.tag_path[first])
        used = used[used >= 0]
        place = np.full(len(self.tag_paths) + 1, -1, np.int32)  # the last for none
        place[used] = np.arange(len(used), dtype=np.int32)
        columns["tag_path"] = place[self.tag_path[first]]
        self.tag_paths = [self.tag_paths[i] for i in used]
        self.anchor = self.near = (np.zeros(1, np.int64), np.zeros(0, np.int32))
        return columns

    def page_texts(self, content: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns of the page texts; ``content`` is that of versions."""
        title = self._placed(self.title)
        body_start, body, counts = self._bodies()
        has_text = content >= 0
        has_text[has_text] = self.has_text[content[has_text]]
        rows = np.unique(content[has_text])
        first, same_as = distinct_rows(
            [title, (body_start, body), (body_start, counts)], rows
        )
        of_content = np.full(len(self.has_text) + 1, -1, np.int32)
        of_content[rows] = same_as
        text = np.where(has_text, of_content[content], -1)
        title_start, in_title = taken(title[0], first)
        start, in_body = taken(body_start, first)
        return {
            "version_text": text,
            "title_start": title_start,
            "title_token": title[1][in_title],
            "body_start": start,
            "body_token": body[in_body],
            "body_count": counts[in_body],
        }

    def _bodies(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pages' words in numbers of the vocabulary, rising, with counts."""
        start, values = self.body
        lengths: list[np.ndarray] = []
        bodies: list[np.ndarray] = []
        counts: list[np.ndarray] = []
        for low in range(0, len(start) - 1, BLOCK):
            rows = start[low : low + BLOCK + 1]
            word = self.place[values[rows[0] : rows[-1]]]
            row = np.repeat(np.arange(len(rows) - 1), np.diff(rows))
            often = self.counts[rows[0] : rows[-1]]
            kept = word >= 0
            word, row, often = word[kept], row[kept], often[kept]
            order = np.argsort(row * len(self.words) + word, kind="stable")
            lengths.append(np.bincount(row, minlength=len(rows) - 1))
            bodies.append(word[order])
            counts.append(often[order])
        self.body = self.title = (np.zeros(1, np.int64), np.zeros(0, np.int32))
        self.counts = np.zeros(0, np.int32)
        return offsets(joined(lengths)), joined(bodies), joined(counts)
