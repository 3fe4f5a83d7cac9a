// Line charts with bands, names at the lines' ends, and a read-out under the pointer.

const WIDE = 560; // from here on there is room for names beside the lines

// chart: {series: [{name, x, y, low, high, colour, dash}], xName, yName, xText, yText,
// yRange, steps}
function lineChart(host, chart) {
  host.chart = chart;
  if (!host.watched) {
    host.watched = new ResizeObserver(() => drawChart(host));
    host.watched.observe(host);
  }
  drawChart(host);
}

function drawChart(host) {
  const chart = host.chart;
  const width = Math.round(host.clientWidth);
  if (!width) return; // not shown yet
  if (!chart.series.length) {
    host.replaceChildren(element("div", { class: "chart" },
      element("p", { class: "empty" }, "No agent is chosen.")));
    return;
  }
  const frame = measure(chart, width);
  const picture = drawn("svg", { viewBox: `0 0 ${width} ${frame.height}`,
    height: frame.height, "aria-hidden": "true" });
  picture.append(...axes(chart, frame));
  for (const series of chart.series) picture.append(...curve(series, chart, frame));
  if (frame.named) picture.append(...endNames(chart, frame));
  const cursor = drawn("g", {});
  picture.append(cursor);
  const readout = element("div", { class: "readout", hidden: true, "aria-live": "polite" });
  const names = chart.series.map((series) => visible(series.name)).join(", ");
  const box = element("div", { class: "chart", tabindex: "0", role: "group",
    "aria-label": `${chart.yName} against ${chart.xName}: ${names}. Arrow keys read values.` },
  picture, readout);
  host.replaceChildren(box);
  follow(box, picture, cursor, readout, chart, frame);
}

function measure(chart, width) {
  const values = chart.series.flatMap((series) => [series.y, series.low, series.high]
    .flatMap((column) => list(column).filter(isNumber)));
  const xs = chart.series.flatMap((series) => series.x.filter(isNumber));
  const named = width >= WIDE;
  const longest = Math.max(...chart.series.map((series) => visible(series.name).length));
  const right = named ? Math.min(230, 26 + 7.3 * longest) : 26;
  const height = width < WIDE ? 280 : Math.min(430, Math.round(width * 0.42));
  const [low, high] = chart.yRange || [Math.min(0, ...values), Math.max(...values, 0)];
  const yTicks = ticks(low, high === low ? low + 1 : high, height < 300 ? 4 : 6);
  const left = 22 + 7.2 * Math.max(...yTicks.map((value) => chart.yText(value).length));
  const top = 34, bottom = 46;
  const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 1e-9);
  const y0 = Math.min(low, yTicks[0]), y1 = Math.max(high, yTicks[yTicks.length - 1]);
  return { width, height, left, right, top, bottom, named, yTicks, x0, x1,
    xTicks: ticks(x0, x1, width < WIDE ? 4 : 6).filter((x) => x >= x0 && x <= x1),
    x: (value) => left + (width - left - right) * (value - x0) / (x1 - x0),
    y: (value) => height - bottom - (height - top - bottom) * (value - y0) / (y1 - y0) };
}

// Round values at even distances that cover a range.
function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((x) => x * power).find((x) => x >= rough * 0.999);
  const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
  return Array.from({ length: last - first + 1 },
    (_, i) => Number(((first + i) * step).toPrecision(12)));
}

function axes(chart, f) {
  const label = (x, y, text, anchor, kind) =>
    drawn("text", { x, y, "text-anchor": anchor, class: kind }, text);
  return [
    ...f.yTicks.flatMap((value) => [
      drawn("line", { class: "grid", x1: f.left, x2: f.width - f.right, y1: f.y(value), y2: f.y(value) }),
      label(f.left - 8, f.y(value) + 4, chart.yText(value), "end")]),
    ...f.xTicks.map((value) => label(f.x(value), f.height - f.bottom + 20, chart.xText(value), "middle")),
    label(f.left - 8, 20, chart.yName, "start", "axis-name"),
    label((f.left + f.width - f.right) / 2, f.height - 9, chart.xName, "middle", "axis-name"),
  ];
}

function curve(series, chart, f) {
  const point = (x, y) => `${f.x(x).toFixed(1)},${f.y(y).toFixed(1)}`;
  const places = series.x.map((_, i) => i).filter((i) => isNumber(series.x[i]) && isNumber(series.y[i]));
  const path = places.map((i, place) => {
    const before = places[place - 1];
    const corner = chart.steps && place ? `L${point(series.x[i], series.y[before])}` : "";
    return `${corner}${place ? "L" : "M"}${point(series.x[i], series.y[i])}`;
  }).join("");
  const parts = [];
  const banded = places.filter((i) => isNumber(list(series.low)[i]) && isNumber(list(series.high)[i]));
  if (banded.length > 1) {
    const up = banded.map((i) => point(series.x[i], series.high[i]));
    const down = banded.map((i) => point(series.x[i], series.low[i])).reverse();
    parts.push(drawn("path", { class: `band ${series.colour}`, d: `M${[...up, ...down].join("L")}Z` }));
  }
  parts.push(drawn("path", { class: `line ${series.colour}`, d: path,
    "stroke-dasharray": series.dash || null }));
  return parts;
}

// Names beside the ends, pushed apart where lines end close together.
function endNames(chart, f) {
  const ends = chart.series.map((series) => {
    const last = series.x.findLastIndex((x, i) => isNumber(x) && isNumber(series.y[i]));
    return { series, x: f.x(series.x[last]), from: f.y(series.y[last]), y: f.y(series.y[last]) };
  }).filter((end) => isNumber(end.y)).sort((a, b) => a.y - b.y);
  const gap = 16, floor = f.height - f.bottom;
  ends.forEach((end, i) => { if (i) end.y = Math.max(end.y, ends[i - 1].y + gap); });
  for (let i = ends.length - 1, limit = floor; i >= 0; i -= 1, limit -= gap) {
    if (ends[i].y <= limit) break;
    ends[i].y = limit;
  }
  const x = f.width - f.right;
  const room = Math.floor((f.right - 24) / 6.9);
  return ends.flatMap(({ series, from, y }) => {
    const text = visible(series.name);
    const cut = text.length > room ? `${text.slice(0, room - 1)}\u2026` : text;
    return [drawn("path", { class: `leader ${series.colour}`, d: `M${x + 2},${from}L${x + 14},${y}` }),
      drawn("text", { class: "name", x: x + 18, y: y + 4 }, cut)];
  });
}

// --- reading values

function follow(box, picture, cursor, readout, chart, f) {
  const xs = [...new Set(chart.series.flatMap((series) => series.x.filter(isNumber)))]
    .sort((a, b) => a - b);
  let place = null;
  const at = (i) => {
    place = i;
    cursor.replaceChildren();
    readout.hidden = i === null;
    if (i === null) return;
    const x = xs[i];
    const values = chart.series.map((series) => ({ series, value: valueAt(series, x, chart.steps) }))
      .filter(({ value }) => value).sort((a, b) => b.value.y - a.value.y);
    cursor.append(drawn("line", { class: "cursor", x1: f.x(x), x2: f.x(x), y1: f.top, y2: f.height - f.bottom }),
      ...values.map(({ series, value }) => drawn("circle",
        { class: `dot ${series.colour}`, cx: f.x(x), cy: f.y(value.y), r: 4 })));
    readout.replaceChildren(element("p", {}, `${chart.xName}: ${chart.xText(x)}`),
      ...values.map(({ series, value }) => element("div", { class: series.colour },
        element("i", {}), name(series.name), element("b", {}, chart.yText(value.y) +
          (isNumber(value.low) ? ` (${chart.yText(value.low)}\u2013${chart.yText(value.high)})` : "")))));
    const leftHalf = f.x(x) < (f.left + f.width - f.right) / 2;
    readout.style.left = leftHalf ? "auto" : `${f.left + 8}px`;
    readout.style.right = leftHalf ? `${f.right + 8}px` : "auto";
  };
  picture.addEventListener("pointermove", (event) => {
    const x = event.clientX - picture.getBoundingClientRect().left;
    let best = 0;
    xs.forEach((value, i) => { if (Math.abs(f.x(value) - x) < Math.abs(f.x(xs[best]) - x)) best = i; });
    at(best);
  });
  picture.addEventListener("pointerleave", () => at(null));
  box.addEventListener("blur", () => at(null));
  box.addEventListener("keydown", (event) => {
    const last = xs.length - 1;
    const now = place === null ? last : place;
    const to = { ArrowLeft: Math.max(0, now - 1), ArrowRight: Math.min(last, now + 1),
      Home: 0, End: last }[event.key];
    if (event.key === "Escape") at(null);
    if (to === undefined) return;
    event.preventDefault();
    at(place === null && event.key.startsWith("Arrow") ? now : to);
  });
}

// What a line shows at a place, between its points too.
function valueAt(series, x, steps) {
  let i = series.x.findLastIndex((value) => isNumber(value) && value <= x);
  if (i < 0 || !isNumber(series.y[i])) return null;
  const next = i + 1;
  const share = steps || next >= series.x.length ? 0 : (x - series.x[i]) / (series.x[next] - series.x[i]);
  if (next >= series.x.length && x > series.x[i]) return null;
  const mix = (column) => {
    if (!column || !isNumber(column[i])) return null;
    return share && isNumber(column[next]) ? column[i] + share * (column[next] - column[i]) : column[i];
  };
  return { y: mix(series.y), low: mix(series.low), high: mix(series.high) };
}

// --- the sections that show charts

function chosen(palette, agents, best) {
  for (const agent of agents.slice(0, best)) palette.add(agent);
  return palette;
}

function startCurves() {
  const tasks = list(DATA.tasks).filter((task) =>
    list(task.standings).some((row) => row.curve && list(row.curve.x).length));
  if (!tasks.length) return false;
  const palette = new Palette();
  options($("curve-task"), tasks.map((task) => [task.id, task.id]));
  const current = () => tasks.find((task) => task.id === $("curve-task").value);
  const rows = () => current().standings.filter((row) => row.curve && list(row.curve.x).length);
  const refresh = () => {
    const task = current();
    const agents = rows().map((row) => row.agent);
    chips($("curve-agents"), agents, palette, refresh);
    $("curve-note").textContent = visible(`${taskText(task)}. Lines are means over the seeds, ` +
      "bands their 95 % intervals; sooner is better.");
    lineChart($("curve-chart"), {
      series: rows().filter((row) => palette.has(row.agent)).map((row) => ({
        name: row.agent, x: row.curve.x, y: row.curve.mean, low: row.curve.low,
        high: row.curve.high, colour: palette.colour(row.agent), dash: palette.dash(row.agent) })),
      xName: "share of the budget used", yName: task.finds || "found",
      xText: (x) => `${figure(100 * x, Number.isInteger(Math.round(1e6 * x) / 1e4) ? 0 : 1)} %`,
      yText: brief });
  };
  const best = () => {
    for (const agent of [...palette.taken.keys()]) palette.remove(agent);
    chosen(palette, rows().map((row) => row.agent), 6);
    refresh();
  };
  $("curve-task").addEventListener("change", () => {
    const agents = rows().map((row) => row.agent);
    if (agents.some((agent) => palette.has(agent))) refresh();
    else best();
  });
  $("curve-best").addEventListener("click", best);
  $("curve-none").addEventListener("click", () => {
    for (const agent of [...palette.taken.keys()]) palette.remove(agent);
    refresh();
  });
  best();
  return true;
}

function startFleets() {
  const fleets = list(DATA.fleets).filter((fleet) => list(fleet.time).length);
  if (!fleets.length) return false;
  const tasks = [...new Set(fleets.map((fleet) => fleet.task))];
  const palette = new Palette();
  options($("fleet-task"), tasks.map((task) => [task, task]));
  const refresh = () => {
    const own = fleets.filter((fleet) => fleet.task === $("fleet-task").value);
    chips($("fleet-agents"), own.map((fleet) => fleet.agent), palette, refresh);
    for (const [key, yText, yRange] of [
      ["population", brief, null], ["freshness", (y) => figure(y, 2), [0, 1]]]) {
      const shown = own.filter((fleet) => list(fleet[key]).some(isNumber));
      show(`${key}-part`, shown.length > 0);
      lineChart($(`${key}-chart`), {
        series: shown.filter((fleet) => palette.has(fleet.agent)).map((fleet) => ({
          name: fleet.agent, x: fleet.time, y: fleet[key], low: fleet[`${key}_low`],
          high: fleet[`${key}_high`], colour: palette.colour(fleet.agent), dash: palette.dash(fleet.agent) })),
        xName: "simulated hours", yName: key === "population" ? "foragers alive" : "share of finds still current",
        xText: brief, yText, yRange, steps: key === "population" });
    }
  };
  const begin = () => {
    const own = fleets.filter((fleet) => fleet.task === $("fleet-task").value);
    if (!own.some((fleet) => palette.has(fleet.agent))) chosen(palette, own.map((fleet) => fleet.agent), 6);
    refresh();
  };
  $("fleet-task").addEventListener("change", begin);
  begin();
  return true;
}
