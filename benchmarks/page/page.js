// What stands around the sections, and the start of everything.

function startLead() {
  const agents = new Set(list(DATA.tasks).flatMap((task) => list(task.standings).map((row) => row.agent)));
  const made = DATA.made || {};
  const parts = [`${plural(agents.size, "crawler")} on ${plural(list(DATA.tasks).length, "task")}`];
  const seeds = Array.isArray(made.seeds) ? made.seeds.length : made.seeds;
  if (isNumber(seeds)) parts.push(`${plural(seeds, "seed")} each`);
  const failed = list(DATA.failures).length;
  if (failed) parts.push(`${plural(failed, "run")} failed`);
  $("lead").textContent = `Recorded pieces of the web, replayed: ${parts.join(", ")}.`;
  return true;
}

function startFailures() {
  const failures = list(DATA.failures);
  $("failure-list").replaceChildren(...failures.map((failure) => {
    const text = String(failure.traceback || "").trimEnd();
    const reason = text.slice(text.lastIndexOf("\n") + 1);
    return element("details", {},
      element("summary", {}, name(failure.agent), ` on ${failure.task}, seed ${failure.seed}`,
        element("small", {}, reason)),
      element("pre", { tabindex: "0" }, text));
  }));
  return failures.length > 0;
}

function startProvenance() {
  const made = Object.entries(DATA.made || {}).filter(([, value]) => value !== null && value !== "");
  const text = (value) => {
    if (Array.isArray(value)) return value.map(text).join(", ");
    if (value && typeof value === "object") {
      return Object.entries(value).map(([key, each]) => `${key} ${text(each)}`).join(", ");
    }
    return String(value);
  };
  $("made").replaceChildren(...made.flatMap(([key, value]) =>
    [element("dt", {}, key.replaceAll("_", " ")), element("dd", {}, text(value))]));
  return made.length > 0;
}

function startBar(sections) {
  const links = new Map(sections.map(([id, title]) =>
    [id, element("a", { href: `#${id}` }, title)]));
  $("sections").replaceChildren(...[...links.values()].map((link) => element("li", {}, link)));
  const mark = () => {
    const passed = sections.filter(([id]) => $(id).getBoundingClientRect().top < window.innerHeight * 0.35);
    const here = (passed[passed.length - 1] || sections[0])[0];
    for (const [id, link] of links) {
      if (id === here) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  window.addEventListener("scroll", mark, { passive: true });
  mark();
}

const SECTIONS = [
  ["ranking", "Ranking", startRanking], ["curves", "Curves", startCurves],
  ["comparison", "How sure", startComparison], ["fleets", "Fleets", startFleets],
  ["replay", "Replay", startReplay], ["failures", "Failures", startFailures],
  ["provenance", "Provenance", startProvenance],
];

startLead();
const begun = SECTIONS.filter(([id, , start]) => {
  try {
    show(id); // charts ask for their width
    show(id, start());
  } catch (error) {
    show(id, false); // the other sections are still of use
    console.error(error);
  }
  return !$(id).hidden;
});
if (begun.length) startBar(begun);
