"""The rules of a crawl over a trace, written once for one forager, a batch or a fleet.

Nothing here knows of Gymnasium, drawing or learning. What follows is the whole
contract; the compiled kernels implement it, and so does, independently, the plain
world of dicts and sets in the tests.

**Time** is simulated, in whole milliseconds. A fetch takes ``fetch_seconds``; with
``cost="bytes"`` it takes that long for a page of the trace's mean size and
proportionally for others, dead ones included (halves rounded up, at least 1 ms; what
has no version takes ``fetch_seconds``). With ``host_delay`` a fetch waits until that
long after the end of the world's last fetch from the same site.

**Pages.** A URL shows its newest version with ``seen`` not after the time at the start
of the step. Status 200-299 is a *page*; 300-399 a *redirect*, which has links but is
no document; both are *alive*. Anything else, or no version, is *dead*: it costs a
fetch and yields nothing, and changes nothing that is known.

**Knowing.** A forager knows the roots, then every URL that was linked from an alive
page it visited, in page order; the place in this order is the URL's discovery number.
With a ``site`` set, links that leave the site are not seen at all. Fetching a page
teaches its version (text, state, links). A link that stands twice on a page counts
once, as it stands first; a page's link to itself is passed over.

**News.** To visit a URL is to fetch it and then every page that it links to, in page
order (``refetch_visited=False`` leaves out those visited in this path). All are shown
as of the step's start; their ages are taken at its end. Fetched pages not older than
``max_age`` (since ``published``) that this forager has not sent before are sent to the
judge, the visited one first, then in page order. A linked URL that is alive and not
visited in this path joins the end of the frontier, unless it is there already. The
path ends when it has ``path_length`` visits or its frontier is empty; then frontier
and visited are emptied, and the next visit may go to any URL that the forager knows.
The judge finds a document *novel* that nobody has sent before: a version of a page,
or with ``document="url"`` the URL (for the forager's own record of what it sent as
well). It pays ``reward`` for a novel document and
``penalty`` for another one; with ``judge="evolution"`` it pays ``penalty`` for every
document and ``reward`` on top for a novel one.

**Topic.** To visit is to fetch that URL alone. A page pays its relevance to the topic:
the cosine of its tf-idf vector with the topic's; with ``similarity="frequency"`` the
cosine of term frequencies (over the largest of them) over the topic's words alone; or 1
for pages with the topic's label (``relevance="label"``). It is *relevant* from
``threshold`` on, if it pays at all.
**Spider.** The same without a topic: a page pays 1 if it is a target, which makes it
relevant. In both, the roots are the first frontier, a URL pays only once, and the URLs
it links to that were unknown join the frontier; what was visited never comes back.

**Reach** (Topic and Spider). With ``reach="links"`` a forager stands on a page, and its
action set is the links of that page, visited or not; the roots until it stands
anywhere. A visit moves it to the page visited. A dead page, or one without links that
can be followed, does not: the forager stays where it stood (a browser's way back), and
so its action set is never empty. With ``revisit="free"`` a page pays once; with
``"pays"`` every visit pays its relevance; with ``"costs"`` a visit to a page that has
paid pays ``penalty``. A page is *novel* only once, whatever it pays.

**Action set.** Before the first visit the roots; later the frontier (or the links of
the page that the forager stands on), or at the start of a path in News all known URLs.
Any other action is illegal: it costs the clock one ``fetch_seconds`` and the budget one
fetch, pays -1, and changes nothing else.

**Slots.** A fixed window on the action set. ``shortlist="newest"`` holds the URLs that
joined the frontier last, ``"oldest"`` those that joined first; at the start of a path
it is always the first known ones, in discovery order, from slot 0 on. A URL keeps its
slot until it leaves the shortlist; one that enters takes the lowest free slot. Within
a step the visited URL leaves first, the one that thereby comes into the shortlist
enters, and then the new ones join one by one. (``reach="links"``: when the forager
moves, all leave; then the links of the new page join in page order.)
``"promising"`` (Topic and Spider, ``reach="frontier"``) gives all of the frontier a
slot while that fits. Otherwise, at the end of each step and at the start, the URLs with
a slot, the new ones and the next 32 others of the frontier (in turn: from its first to
its last, then from its first again) compete, and the slots go to the most promising,
ties to the lower discovery number; those who enter do so in order of discovery. A URL's
promise is the sum of its columns anchor, near, url, anchor_paid, url_paid, source,
source_rate, directory_rate, path_rate and ending_rate (see `observe`), in whole 1/1024:
x counts as floor(1024 x + 0.3137).

**End.** An empty action set terminates a crawl; a spent budget (fetches, or simulated
time) truncates it. A step that was begun is finished.
"""

from gym_webforage.world.forager import Forager
from gym_webforage.world.rules import Rules
from gym_webforage.world.world import World

__all__ = ["Forager", "Rules", "World"]
