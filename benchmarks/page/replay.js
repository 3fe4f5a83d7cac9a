// The player: a map on a canvas, the same as text, and the means to move in time.

const FORAGERS = [0, 2, 3, 5, 6, 7]; // colours that differ from that of what pays
const player = { crawl: null, playing: false, last: 0, owed: 0, colours: {} };

const foragerColour = (forager) => `c${FORAGERS[forager % FORAGERS.length]}`;
const foragerClass = (forager) => `s${FORAGERS[forager % FORAGERS.length]}`;

function startReplay() {
  const replays = list(DATA.replays).filter((replay) => replay.steps && list(replay.steps.page).length);
  if (!replays.length) return false;
  options($("replay-choice"), replays.map((replay, i) =>
    [String(i), `${replay.task}: ${replay.agent}, seed ${replay.seed}`]));
  $("replay-choice").addEventListener("change", () => open(replays[Number($("replay-choice").value)]));
  for (const [id, move] of Object.entries({
    "to-start": () => 0, back: (step) => step - 1, forth: (step) => step + 1,
    "to-end": () => player.crawl.length })) {
    $(id).addEventListener("click", () => { pause(); go(move(player.crawl.step)); });
  }
  $("play").addEventListener("click", () => (player.playing ? pause() : play()));
  $("scrub").addEventListener("input", () => { pause(); go(Number($("scrub").value)); });
  $("player").addEventListener("keydown", onKey);
  const canvas = $("map");
  canvas.addEventListener("pointermove", (event) => point(pageAt(event)));
  canvas.addEventListener("pointerleave", () => point(-1));
  canvas.addEventListener("click", (event) => {
    const page = pageAt(event);
    if (page >= 0 && player.crawl.firstVisit[page] >= 0) { pause(); go(player.crawl.firstVisit[page]); }
  });
  new ResizeObserver(() => { fit(); drawMap(); }).observe(canvas.parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); drawMap(); });
  readColours();
  open(replays[0]);
  return true;
}

function open(replay) {
  pause();
  player.crawl = new Crawl(replay);
  player.most = replay.pages.x.length ? Math.max(...bestWorths(replay), 1e-9) : 1;
  $("scrub").max = String(player.crawl.length);
  drawSpark();
  drawSigns(replay);
  const cut = replay.whole ? "" : ` The first ${plural(player.crawl.length, "step")} of a longer crawl.`;
  const hidden = replay.hidden > 0 ? ` ${figure(replay.hidden)} more known pages are not drawn.` : "";
  const about = replay.about ? `, ${replay.about}` : "";
  $("replay-note").textContent = visible(`${replay.trace}${about}.${cut}${hidden}`);
  fit();
  go(0);
}

function bestWorths(replay) {
  const worth = new Map();
  const paid = list(replay.paid);
  for (let k = 0; k < paid.length; k += 3) worth.set(paid[k + 1], (worth.get(paid[k + 1]) || 0) + paid[k + 2]);
  return worth.values();
}

// --- moving in time

function go(step) {
  const crawl = player.crawl;
  crawl.seek(Math.min(crawl.length, Math.max(0, step)));
  drawMap();
  tell();
}

function play() {
  if (player.crawl.step >= player.crawl.length) go(0);
  player.playing = true;
  player.owed = 0;
  player.last = performance.now();
  markPlaying();
  requestAnimationFrame(tick);
}

function pause() {
  if (!player.playing) return;
  player.playing = false;
  markPlaying();
  tell();
}

function markPlaying() {
  $("player").classList.toggle("playing", player.playing);
  $("play-word").textContent = player.playing ? "Pause" : "Play";
  // A voice cannot keep up with a running replay.
  $("now").setAttribute("aria-live", player.playing ? "off" : "polite");
}

function tick(time) {
  if (!player.playing) return;
  const speed = Number($("speed").value);
  player.owed += Math.min(0.25, Math.max(0, (time - player.last) / 1000)) * speed;
  player.last = time;
  const steps = Math.floor(player.owed);
  if (steps) {
    player.owed -= steps;
    go(player.crawl.step + steps);
  }
  if (player.crawl.step >= player.crawl.length) pause();
  else requestAnimationFrame(tick);
}

function onKey(event) {
  const kind = event.target.tagName;
  if (kind === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
  const stride = event.shiftKey ? 10 : 1, now = player.crawl.step;
  if (event.key === " ") {
    if (kind === "BUTTON") return; // it presses the button
    event.preventDefault();
    if (player.playing) pause();
    else play();
    return;
  }
  const to = { ArrowLeft: now - stride, ArrowRight: now + stride, ArrowDown: now - stride,
    ArrowUp: now + stride, Home: 0, End: player.crawl.length }[event.key];
  if (to === undefined || (kind !== "INPUT" && /^Arrow(Up|Down)$/.test(event.key))) return;
  event.preventDefault();
  pause();
  go(to);
}

// --- text

function tell() {
  const crawl = player.crawl, { record, step } = crawl;
  const { steps } = record;
  const i = step - 1;
  $("scrub").value = String(step);
  $("scrub").setAttribute("aria-valuetext", `step ${step} of ${crawl.length}`);
  const line = $("spark").querySelector(".cursor");
  line.setAttribute("x1", String(step));
  line.setAttribute("x2", String(step));
  $("now").replaceChildren(...(step ? sentence(crawl, i) : ["Nothing is visited yet; the crawl starts at its roots."]));
  const facts = [["step", `${figure(step)} / ${figure(crawl.length)}`], ["clock (UTC)", crawl.clock(step)],
    ["reward so far", brief(crawl.totals.reward[step])],
    [record.finds || "found", figure(crawl.totals.finds[step])],
    ["fetches", figure(crawl.totals.fetches[step])],
    ["pages known", figure(step ? steps.known[i] : record.pages.found.filter((at) => at === 0).length)],
    ["frontier", step ? figure(steps.frontier[i]) : "\u2013"]];
  if (steps.alive) facts.push(["foragers alive", figure(step ? steps.alive[i] : steps.alive[0])]);
  $("facts").replaceChildren(...facts.map(([term, text]) =>
    element("div", {}, element("dt", {}, term), element("dd", {}, text))));
  const visits = [];
  for (let k = i; k >= 0 && visits.length < 8; k -= 1) visits.push(visitLine(crawl, k));
  $("visits").replaceChildren(...(visits.length ? visits : [element("li", {}, "none yet")]));
}

const signed = (value) => (value > 0 ? `+${brief(value)}` : brief(value));

function sentence(crawl, i) {
  const { steps } = crawl.record;
  const who = steps.alive ? `forager ${steps.forager[i]} ` : "";
  if (steps.outcome[i] === ILLEGAL) return [`Step ${i + 1}: ${who}an illegal choice, which costs a fetch.`];
  const what = steps.outcome[i] === DEAD ? "fetched in vain " : "visited ";
  return [`Step ${i + 1}: ${who}${what}`, address(crawl.address(steps.page[i])),
    `, reward ${signed(steps.reward[i])}, ${brief(crawl.totals.reward[i + 1])} in all.`];
}

function visitLine(crawl, i) {
  const { steps } = crawl.record;
  const reward = steps.reward[i];
  return element("li", { class: foragerClass(steps.forager[i]) },
    element("b", { class: reward > 0 ? "pays" : null }, signed(reward)),
    steps.alive ? element("i", { title: `forager ${steps.forager[i]}` }) : null,
    steps.page[i] >= 0 ? address(crawl.address(steps.page[i]).replace(/^https?:\/\/[^/]*(?=\/)/, "")) : element("span", {}, "illegal choice"));
}

function drawSpark() {
  const totals = player.crawl.totals.reward, last = totals.length - 1;
  const low = Math.min(0, ...totals), high = Math.max(...totals, low + 1e-9);
  const y = (value) => (39 - 37 * (value - low) / (high - low)).toFixed(2);
  const path = totals.map((value, i) => `${i ? "L" : "M"}${i},${y(value)}`).join("");
  const spark = $("spark");
  spark.setAttribute("viewBox", `0 0 ${last} 40`);
  spark.replaceChildren(drawn("path", { class: "area", d: `${path}L${last},${y(low)}L0,${y(low)}Z` }),
    drawn("path", { class: "line", d: path }), drawn("line", { class: "cursor", x1: 0, x2: 0, y1: 0, y2: 40 }));
}
