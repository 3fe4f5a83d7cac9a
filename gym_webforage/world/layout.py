"""Where everything stands in the arrays that the kernels share with Python.

Kernels see a trace, a world and a forager each as a row of addresses. The numbers here
say which address is what, and what stands where in the arrays behind them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def _numbered(names: str) -> list[int]:
    return list(range(len(names.split())))


# --- a trace: one address each
TRACE_ARRAYS = (
    "version_start version_seen version_published version_status version_bytes "
    "version_text version_state link_start link_target link_text url_site url_target "
    "url_label_start url_label url_token_start url_token url_ending anchor_start "
    "anchor_token near_start near_token body_start body_token body_count idf text_norm "
    "url_directory tag_path"
)
(
    VERSION_START,
    SEEN,
    PUBLISHED,
    STATUS,
    BYTES,
    VERSION_TEXT,
    STATE,
    LINK_START,
    LINK_TARGET,
    LINK_TEXT,
    URL_SITE,
    URL_TARGET,
    LABEL_START,
    LABEL,
    URL_TOKEN_START,
    URL_TOKEN,
    URL_ENDING,
    ANCHOR_START,
    ANCHOR,
    NEAR_START,
    NEAR,
    BODY_START,
    BODY,
    BODY_COUNT,
    IDF,
    TEXT_NORM,
    URL_DIRECTORY,
    TAG_PATH,  # of link texts, -1: none
) = _numbered(TRACE_ARRAYS)
TRACE_STATES = len(TRACE_ARRAYS.split())  # a number, not an address: k

# --- a world: addresses, then the meaning of its integers and numbers
(
    WORLD_INTS,
    WORLD_FLOATS,
    PAID_BITS,  # documents that someone sent (News), URLs that have paid (others)
    LOG_TIME,
    LOG_ROWS,
    LOG_VALUE,
    SITE_READY,  # when each site may be asked again
    TOPIC,  # the topic's unit vector over the vocabulary
    TOPIC_FREQUENCY,  # how often its words occur in it; empty if not asked for
) = range(9)
WORLD_FIELDS = 9

(
    CLOCK,
    START,
    FETCHES,
    BUDGET_TIME,
    BUDGET_FETCHES,
    LOG_COUNT,
    LOG_CAPACITY,
    RULES,
    FETCH_TIME,
    MAX_AGE,
    PATH_LENGTH,
    REFETCH_VISITED,
    DOCUMENT_IS_URL,
    COST_IS_BYTES,
    HOST_DELAY,
    EVOLUTION,
    TOPIC_LABEL,  # -1: relevance is similarity
    SITE,  # -1: all sites
    MAKES_LOG,
    REACH_LINKS,  # the action set is the links of the page that a forager stands on
    REVISIT,
) = range(21)
WORLD_INT_COUNT = 21

REVISIT_FREE, REVISIT_PAYS, REVISIT_COSTS = range(3)

NEWS, TOPIC_RULES, SPIDER = range(3)

# TOPIC_SQUARE is of the frequencies; negative: similarity is that of tf-idf
REWARD, PENALTY, THRESHOLD, MEAN_BYTES, TOPIC_SQUARE = range(5)
WORLD_FLOAT_COUNT = 5

LOG_URL, LOG_VERSION, LOG_STEP, LOG_FORAGER, LOG_FLAGS = range(5)
LOG_COLUMNS = 5
VISITED, SENT, NOVEL, DEAD, ILLEGAL = 1, 2, 4, 8, 16  # an event's flags

# --- a forager: addresses, then the meaning of its integers and numbers
(
    FORAGER_INTS,
    FORAGER_FLOATS,
    LEDGER,  # one row of integers for each known URL, by discovery number
    LEDGER_FLOATS,
    HASH,  # (URL, discovery number), open addressing
    MARKS,  # documents that this forager has sent
    SLOT,  # discovery number in each slot, -1 if empty
    SLOT_CHANGED,
    OUTBOX,  # pages fetched in this step: discovery number, version, row in the log
    ENDING_STATS,  # sum of values and number of fetches by file ending
    SITE_STATS,
    DIRECTORY_STATS,
    PATH_STATS,
    PROFILE,  # two numbers a word: in links to paying pages, and in these pages
    SEEN_WORDS,  # words of links seen so far
    HISTORY,  # one row for each known URL, where News tells of changes
    CONTEST,  # room for choosing whom the slots are for
) = range(17)
FORAGER_FIELDS = 17

(
    KNOWN,
    LEDGER_CAPACITY,
    HASH_SHIFT,
    FRONTIER,
    HEAD,  # the frontier is a linked list through the ledger
    TAIL,
    EDGE,  # the shortlist runs from here to the tail (newest) or from the head to here
    SLOTS,
    SLOTTED,
    FREE_SLOT,  # no slot below this one is free
    WINDOW,  # slots that are a window on an end of the frontier: all of them or none
    SHORTLIST_OLDEST,
    PATH,
    PATH_VISITS,
    AT_START,  # any known URL may be visited
    STEP,
    STAMP,  # counts observations' changes; never goes back
    KNOWN_BEFORE,
    LAST_URL,
    LAST_FETCHES,
    LAST_SENT,
    LAST_NOVEL,
    OUTBOX_COUNT,
    FORAGER_NUMBER,
    STATE_COLUMNS,
    SENT_TOTAL,
    NOVEL_TOTAL,
    PROFILE_NUMBER,  # how often the profile changed
    HAS_LEDGER_FLOATS,
    HERE,  # the page that it stands on (REACH_LINKS), -1 before the first
    HAS_HISTORY,
    IS_SCALED,  # observations are z-scores
    KEEPS_ROWS,  # only what changed is observed anew: plain News
    SCAN,  # whose turn it is to be considered for a slot, -1: the frontier's first
) = range(34)
FORAGER_INT_COUNT = 34

SCANNED = 32  # waiting URLs considered in a step

REWARD_TOTAL, LAST_REWARD, LINK_SQUARE, BODY_SQUARE, VALUE_TOTAL, VALUES, MEAN_VALUE = (
    range(7)
)
FORAGER_FLOAT_COUNT = 7

(
    URL,
    IN_PATH,
    PLACE,
    PREVIOUS,
    NEXT,
    SLOT_OF,
    TOUCHED,
    VERSION,
    IN_LINKS,
    VISITS,
    DEPTH,
    SOURCE,
    TEXT,
    FOUND_AT,
    CHILDREN,
    PROFILE_SEEN,  # which profile the likenesses were computed with
) = range(16)
LEDGER_COLUMNS = 16  # 64 bytes: one cache line for each known URL
ON_FRONTIER, WAS_VISITED = 1, 2  # PLACE, valid while IN_PATH is the current path

# News has no use for these columns, and all of a URL's facts then fit one cache line.
AGE, PAID = DEPTH, CHILDREN  # AGE in tenths of a second
LONGEST_AGE = 2**31 - 1

(
    ANCHOR_COSINE,
    NEAR_COSINE,
    URL_COSINE,
    SOURCE_VALUE,
    SOURCE_SUM,
    CHILD_SUM,
    VALUE,
    NEW_WORDS,
    ANCHOR_PAID,  # likeness to the links that led to paying pages
    NEAR_PAID,
    URL_PAID,
    ANCHOR_BODY,  # likeness to the text of paying pages
    NEAR_BODY,
    URL_BODY,
) = range(14)
LEDGER_FLOAT_COLUMNS = 16  # Topic and Spider only; again one cache line

# What News tells of changes, in whole numbers and milliseconds.
HISTORY_FETCHES, HISTORY_CHANGES, FETCHED_AT, CHANGED_AT = range(4)
HISTORY_FIELDS = 4

# --- observations
NEWS_COLUMNS = ("age", "links", "in_links", "visits", "yield", "fetched")
HISTORY_COLUMNS = (
    "fetches",
    "change_rate",
    "since_fetch",
    "since_change",
    "age_now",
    "directory_yield",
)
HISTORY_COUNT = len(HISTORY_COLUMNS)
TRANSFER_COLUMNS = (
    "anchor",
    "near",
    "url",
    "anchor_paid",
    "near_paid",
    "url_paid",
    "anchor_body",
    "near_body",
    "url_body",
    "source",
    "source_mean",
    "source_rate",
    "directory_rate",
    "path_rate",
    "ending_rate",
    "site_rate",
    "depth",
    "waiting",
    "in_links",
    "new_words",
    "untried",
)
CONTEXT_COLUMNS = (
    "budget_left",
    "day_sine",
    "day_cosine",
    "at_start",
    "path",
    "frontier",
    "last_reward",
    "mean_reward",
)

# --- what a kernel answers
ENDED, TRUNCATED, WAS_ILLEGAL, GROW_LEDGER, GROW_LOG = 1, 2, 4, 8, 16


def addresses(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the addresses of arrays, which their owner must keep alive."""
    return np.array([array.ctypes.data for array in arrays], np.int64)
