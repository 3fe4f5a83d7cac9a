// The map of a crawl: known pages, frontier, visits, what paid, and the last path.

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const wanted = ["paper", "card", "ink", "soft", "edge", "known", "paid", "accent",
    ...Array.from({ length: PLACES }, (_, i) => `c${i}`)];
  for (const key of wanted) player.colours[key] = style.getPropertyValue(`--${key}`).trim();
}

// Give the canvas the shape of the map, as far as the window allows.
function fit() {
  const canvas = $("map"), { x, y } = player.crawl.record.pages;
  const width = canvas.parentElement.clientWidth;
  if (!width) return;
  const wide = Math.max(1, ...x), high = Math.max(1, ...y);
  const margin = 18;
  const tallest = Math.max(300, Math.min(620, window.innerHeight * 0.58));
  const height = Math.round(Math.min(tallest, Math.max(260, (width - 2 * margin) * high / wide + 2 * margin)));
  const sharp = Math.min(3, window.devicePixelRatio || 1);
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * sharp);
  canvas.height = Math.round(height * sharp);
  const scale = Math.min((width - 2 * margin) / wide, (height - 2 * margin) / high);
  const left = (width - wide * scale) / 2, top = (height - high * scale) / 2;
  const area = wide * scale * high * scale;
  player.view = { sharp, width, height,
    size: Math.min(5.5, Math.max(1.7, 0.13 * Math.sqrt(area / x.length))),
    x: x.map((value) => left + value * scale), y: y.map((value) => top + value * scale) };
}

function drawMap() {
  if (!player.view || !player.crawl) return;
  const context = $("map").getContext("2d"), { view } = player;
  context.setTransform(view.sharp, 0, 0, view.sharp, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  drawLinks(context);
  drawPages(context);
  drawTrails(context);
}

function drawLinks(context) {
  const { crawl, view, colours } = player;
  const { parent } = crawl.record.pages, links = list(crawl.record.links);
  const lines = (alpha, width, pairs) => {
    context.globalAlpha = alpha;
    context.lineWidth = width;
    context.strokeStyle = colours.edge;
    context.beginPath();
    for (const [a, b] of pairs) {
      context.moveTo(view.x[a], view.y[a]);
      context.lineTo(view.x[b], view.y[b]);
    }
    context.stroke();
    context.globalAlpha = 1;
  };
  const other = [];
  for (let k = 0; k < links.length; k += 2) {
    if (crawl.visitor[links[k]] >= 0 && crawl.isKnown(links[k + 1]) && parent[links[k + 1]] !== links[k]) {
      other.push([links[k], links[k + 1]]);
    }
  }
  lines(0.1, 0.7, other);
  lines(0.34, 0.8, parent.map((from, page) => [from, page])
    .filter(([from, page]) => from >= 0 && crawl.isKnown(page)));
}

function drawPages(context) {
  const { crawl, view, colours, most } = player;
  const { found } = crawl.record.pages, r = view.size;
  for (let page = 0; page < found.length; page += 1) {
    if (!crawl.isKnown(page) && crawl.visitor[page] < 0 && !crawl.worth[page]) continue;
    const look = { x: view.x[page], y: view.y[page] };
    const visitor = crawl.visitor[page] >= 0 ? colours[foragerColour(crawl.visitor[page])] : null;
    if (crawl.worth[page]) {
      const radius = r * (1.15 + 0.75 * Math.sqrt(Math.min(1, crawl.worth[page] / most)));
      disc(context, look, radius, colours.paid, visitor || colours[foragerColour(crawl.finder[page])],
        visitor ? 1.8 : crawl.record.steps.alive ? 1.2 : 0);
      if (crawl.fresh.has(page)) disc(context, look, radius + 3.2, null, colours.ink, 1.4);
    } else if (visitor && crawl.dead[page]) cross(context, look, r * 0.9, colours.soft);
    else if (visitor) disc(context, look, r * 1.1, visitor);
    else if (crawl.isOnFrontier(page)) disc(context, look, r * 0.9, colours.card, colours.accent, 1.1);
    else disc(context, look, r * 0.7, colours.known);
    if (found[page] === 0 && crawl.record.pages.parent[page] < 0) square(context, look, r * 2.1, colours.ink);
  }
}

function drawTrails(context) {
  const { crawl, view, colours } = player;
  const several = Boolean(crawl.record.steps.alive);
  const now = crawl.step ? crawl.record.steps.forager[crawl.step - 1] : -1;
  for (const [forager, trail] of crawl.trails) {
    const colour = several ? colours[foragerColour(forager)] : colours.c1;
    context.strokeStyle = colour;
    context.lineCap = "round";
    for (let k = 1; k < trail.length; k += 1) {
      const share = k / (trail.length - 1);
      context.globalAlpha = 0.12 + 0.7 * share ** 1.6;
      context.lineWidth = 0.9 + 1.7 * share;
      context.beginPath();
      context.moveTo(view.x[trail[k - 1]], view.y[trail[k - 1]]);
      context.lineTo(view.x[trail[k]], view.y[trail[k]]);
      context.stroke();
    }
    context.globalAlpha = 1;
    const last = trail[trail.length - 1];
    const look = { x: view.x[last], y: view.y[last] };
    const size = several ? 8 : 6;
    if (forager === now) disc(context, look, size + 4, null, colour, 1.5);
    disc(context, look, size, colour, colours.card, 2);
    if (several) {
      context.fillStyle = colours.card;
      context.font = "600 10px system-ui, sans-serif";
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(String(forager), look.x, look.y + 0.5);
    }
  }
}

function disc(context, { x, y }, radius, fill, stroke, width) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  if (fill) {
    context.fillStyle = fill;
    context.fill();
  }
  if (stroke && width) {
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.stroke();
  }
}

function square(context, { x, y }, half, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.strokeRect(x - half, y - half, 2 * half, 2 * half);
}

function cross(context, { x, y }, half, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1.4;
  context.beginPath();
  context.moveTo(x - half, y - half);
  context.lineTo(x + half, y + half);
  context.moveTo(x - half, y + half);
  context.lineTo(x + half, y - half);
  context.stroke();
}

// --- what is under the pointer

function pageAt(event) {
  const { crawl, view } = player;
  const box = $("map").getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  let best = -1, nearest = 12 ** 2;
  for (let page = 0; page < view.x.length; page += 1) {
    const distance = (view.x[page] - x) ** 2 + (view.y[page] - y) ** 2;
    if (distance < nearest && crawl.isKnown(page)) { best = page; nearest = distance; }
  }
  return best;
}

function point(page) {
  const tip = $("map-tip"), { crawl } = player;
  tip.hidden = page < 0;
  if (page < 0) return;
  const visit = crawl.firstVisit[page];
  tip.replaceChildren(address(crawl.address(page)),
    visit >= 0 ? ` visited in step ${visit}` : crawl.isOnFrontier(page) ? " on the frontier" : " known",
    crawl.worth[page] > 1e-6 ? `, paid ${brief(crawl.worth[page])}` : "");
  $("map").style.cursor = visit >= 0 ? "pointer" : "default";
}

// --- what the signs mean

function drawSigns(replay) {
  const several = Boolean(replay.steps.alive);
  const circle = (attributes) => drawn("circle", { cx: 12, cy: 12, r: 5, ...attributes });
  const colour = (key) => `var(--${key})`;
  const sign = (shapes, text) => element("li", {},
    drawn("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, shapes), text);
  const paint = (node, values) => { Object.assign(node.style, values); return node; };
  const trail = several ? "c0" : "c1";
  $("signs").replaceChildren(
    sign(paint(circle({}), { fill: colour("c0") }), several ? "visited, in the colour of the forager" : "visited"),
    sign(paint(circle({}), { fill: colour("card"), stroke: colour("accent") }), "frontier: may be visited next"),
    sign(paint(circle({ r: 3.5 }), { fill: colour("known") }),
      replay.kind === "news" ? "known, not on the frontier of a path" : "known"),
    sign(paint(circle({ r: 6 }), { fill: colour("paid") }), `paid: ${replay.finds || "a find"}`),
    sign([paint(circle({ r: 5.5 }), { fill: colour("paid") }),
      paint(circle({ r: 9 }), { fill: "none", stroke: colour("ink"), strokeWidth: "1.4" })], "paid in this step"),
    sign([paint(drawn("line", { x1: 2, y1: 12, x2: 14, y2: 12 }), { stroke: colour(trail), strokeWidth: "2" }),
      paint(circle({ cx: 16 }), { fill: colour(trail) })],
    several ? "last visits of each forager, up to here" : "last visits, up to here"),
    sign(paint(drawn("rect", { x: 5, y: 5, width: 14, height: 14 }), { fill: "none", stroke: colour("ink"), strokeWidth: "1.5" }),
      "root: where it started"),
    sign(paint(drawn("path", { d: "M8 8L16 16M8 16L16 8" }), { stroke: colour("soft"), strokeWidth: "1.6" }),
      "dead: cost a fetch, yielded nothing"));
}
