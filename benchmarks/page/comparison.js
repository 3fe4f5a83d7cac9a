// How sure the ranking is: performance profiles and probabilities of improvement.

function startComparison() {
  const profiles = DATA.profiles || {}, improvement = DATA.improvement || {};
  const titles = new Map(list(DATA.groups).map((group) => [group.id, group.title || group.id]));
  const has = (id) => Boolean((profiles[id] && list(profiles[id].threshold).length) ||
    (improvement[id] && list(improvement[id].agents).length > 1));
  const groups = [...new Set([...titles.keys(), ...Object.keys(profiles),
    ...Object.keys(improvement)])].filter(has);
  if (!groups.length) return false;
  const palette = new Palette();
  options($("comparison-group"), groups.map((id) => [id, titles.get(id) || id]));
  const best = (id) => {
    const group = list(DATA.groups).find((other) => other.id === id);
    const shares = (profiles[id] || {}).share || {};
    const ranked = group ? list(group.standings).map((row) => row.agent) : [];
    return [...new Set([...ranked, ...Object.keys(shares)])].filter((agent) => shares[agent]);
  };
  const refresh = () => {
    const id = $("comparison-group").value;
    show("profile", best(id).length > 0);
    if (best(id).length) showProfile(profiles[id], best(id), palette, refresh);
    const table = improvement[id];
    show("improvement", Boolean(table && list(table.agents).length > 1));
    if (table && list(table.agents).length > 1) showImprovement(table);
  };
  const begin = () => {
    const agents = best($("comparison-group").value);
    if (!agents.some((agent) => palette.has(agent))) chosen(palette, agents, 6);
    refresh();
  };
  $("comparison-group").addEventListener("change", begin);
  show("comparison-controls", groups.length > 1);
  begin();
  return true;
}

function showProfile(profile, agents, palette, changed) {
  chips($("profile-agents"), agents, palette, changed);
  lineChart($("profile-chart"), {
    series: agents.filter((agent) => palette.has(agent)).map((agent) => ({ name: agent,
      x: profile.threshold, y: profile.share[agent], low: (profile.low || {})[agent],
      high: (profile.high || {})[agent], colour: palette.colour(agent), dash: palette.dash(agent) })),
    xName: "score", yName: "share of runs above it", yRange: [0, 1],
    xText: (x) => figure(x, 2), yText: (y) => `${figure(100 * y)} %` });
}

function showImprovement(table) {
  const agents = table.agents;
  const part = (which, i, j) => list(list(table[which])[i])[j];
  $("improvement-table").tHead.replaceChildren(element("tr", {},
    element("th", { class: "left sticky", scope: "col" }, "finds more than \u2192"),
    agents.map((agent) => element("th", { scope: "col" }, name(agent)))));
  $("improvement-table").tBodies[0].replaceChildren(...agents.map((agent, i) =>
    element("tr", {}, element("th", { class: "left sticky", scope: "row" }, name(agent)),
      agents.map((_, j) => {
        const value = part("mean", i, j);
        if (i === j || !isNumber(value)) return element("td", {}, i === j ? "" : "\u2013");
        const low = part("low", i, j), high = part("high", i, j);
        const spread = isNumber(low) ? ` (${figure(low, 2)}\u2013${figure(high, 2)})` : "";
        const cell = element("td", { class: value < 0.5 ? "heat low" : "heat" },
          figure(value, 2), element("small", {}, spread));
        cell.style.setProperty("--p", String(Math.round(44 * Math.abs(value - 0.5))));
        return cell;
      }))));
}
