// The ranking: one table, of a group of tasks or of one task; sorted, filtered.

const ranking = { boards: [], sort: { key: "rank", down: false }, hide: new Set() };

function startRanking() {
  const ranked = (boards) => list(boards).filter((board) => list(board.standings).length)
    .map((board) => ({ ...board, standings: board.standings.map(flattened) }));
  const groups = ranked(DATA.groups), tasks = ranked(DATA.tasks);
  ranking.boards = [
    ...groups.map((group) => ({ id: `group ${group.id}`, of: group, isGroup: true,
      title: group.title || group.id })),
    ...tasks.map((task) => ({ id: `task ${task.id}`, of: task, isGroup: false,
      title: task.id })),
  ];
  if (!ranking.boards.length) return false;
  const select = $("board");
  const part = (label, boards) => boards.length ? element("optgroup", { label },
    boards.map((board) => element("option", { value: board.id }, board.title))) : null;
  select.replaceChildren(...[
    part("Groups of tasks", ranking.boards.filter((board) => board.isGroup)),
    part("Single tasks", ranking.boards.filter((board) => !board.isGroup)),
  ].filter(Boolean));
  startHiders();
  select.addEventListener("change", () => {
    ranking.sort = { key: "rank", down: false };
    showRanking();
  });
  $("filter").addEventListener("input", showRanking);
  showRanking();
  return true;
}

// What a method may see stands beside its other figures, or in a part of its own.
function flattened(row) {
  const sees = row.sees;
  return sees && typeof sees === "object" ? { ...row, ...sees, sees: sees.text } : row;
}

const isPrivileged = (row) => Boolean(row.privileged);
const isTrained = (row) => Boolean(row.trains) || row.training_fetches > 0;
const failedRuns = (row) => (row.failed === true ? 1 : row.failed || 0);
const HIDERS = [
  ["privileged", "those that look into the trace", isPrivileged],
  ["trained", "those trained before", isTrained],
  ["failed", "those that failed", (row) => failedRuns(row) > 0],
];

function startHiders() {
  const rows = ranking.boards.flatMap((board) => board.of.standings);
  const boxes = HIDERS.filter(([, , is]) => rows.some(is)).map(([key, text]) =>
    element("label", {}, element("input", { type: "checkbox", id: `hide-${key}`,
      onchange: (event) => {
        if (event.target.checked) ranking.hide.add(key);
        else ranking.hide.delete(key);
        showRanking();
      } }), `hide ${text}`));
  $("hiders").replaceChildren(...boxes);
}

function showRanking() {
  const board = ranking.boards.find(({ id }) => id === $("board").value);
  const all = board.of.standings;
  const columns = board.isGroup ? groupColumns(board.of) : taskColumns(board.of);
  const wanted = $("filter").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const hidden = HIDERS.filter(([key]) => ranking.hide.has(key));
  const rows = all.filter((row) => {
    const text = String(row.agent).toLowerCase();
    return wanted.every((word) => text.includes(word)) && !hidden.some(([, , is]) => is(row));
  });
  const column = columns.find(({ key }) => key === ranking.sort.key) || columns[0];
  const head = element("tr", {}, columns.map((each) => headCell(each, column)));
  $("table").tHead.replaceChildren(head);
  $("table").tBodies[0].replaceChildren(...sorted(rows, column).map((row) =>
    element("tr", { class: failedRuns(row) ? "is-failed" : isEnd(row) ? "is-end" : null },
      columns.map((each) => element(each.key === "agent" ? "th" : "td",
        { class: each.style, scope: each.key === "agent" ? "row" : null }, each.cell(row))))));
  $("about").textContent = visible(board.isGroup ? groupText(board.of) : taskText(board.of));
  $("shown").textContent = rows.length === all.length
    ? plural(all.length, "agent") : `${rows.length} of ${plural(all.length, "agent")}`;
}

const isEnd = (row) => row.low === row.high && (row.score === 0 || row.score === 1);

function groupText(group) {
  const tasks = list(group.tasks);
  return `Score: interquartile mean over ${plural(tasks.length, "task")}: ${tasks.join(", ")}.`;
}

function taskText(task) {
  if (task.title && task.title !== task.id) return task.title;
  const unit = isNumber(task.budget) ? " fetches" : "";
  return `${task.finds || "pages"} in ${task.budget}${unit} on ${task.trace}`;
}

// --- columns

function headCell(column, current) {
  const active = column.key === current.key;
  const sort = active ? (ranking.sort.down ? "descending" : "ascending") : null;
  const button = element("button", { type: "button", title: column.hint, "data-key": column.key,
    onclick: () => {
      const down = active ? !ranking.sort.down : column.key !== "agent" && column.key !== "rank";
      ranking.sort = { key: column.key, down };
      showRanking();
      [...$("table").tHead.querySelectorAll("button")]
        .find((other) => other.dataset.key === column.key).focus();
    } }, column.title);
  return element("th", { scope: "col", class: column.style, "aria-sort": sort }, button);
}

// Those without a value come last in either direction; ties stay in order of rank.
function sorted(rows, column) {
  const sign = ranking.sort.down ? -1 : 1;
  const missing = (value) => value === null || value === undefined || value === "";
  return rows.map((row, place) => ({ row, place, value: column.value(row) }))
    .sort((a, b) => {
      if (missing(a.value) || missing(b.value)) {
        return missing(a.value) - missing(b.value) || a.place - b.place;
      }
      const order = typeof a.value === "string"
        ? a.value.localeCompare(b.value) : a.value - b.value;
      return sign * order || a.place - b.place;
    })
    .map(({ row }) => row);
}

function leadingColumns(rows) {
  return [
    { key: "rank", title: "rank", hint: "from the best to the worst place that its interval allows",
      value: (row) => row.rank, cell: rankText },
    { key: "agent", title: "agent", style: "left sticky", value: (row) => String(row.agent),
      cell: agentCell },
    { key: "interval", title: "score, 95 % interval", style: "left",
      hint: "0: random walk, 1: oracle", value: (row) => row.score,
      cell: intervalCell(rows) },
    number("score", "score", "0: random walk, 1: oracle", 3),
  ];
}

function rankText(row) {
  if (!isNumber(row.rank)) return "\u2013";
  return row.rank_last > row.rank ? `${row.rank}\u2013${row.rank_last}` : String(row.rank);
}

const number = (key, title, hint, digits) => ({ key, title, hint, value: (row) => row[key],
  cell: (row) => (digits === undefined ? brief(row[key]) : figure(row[key], digits)) });

const COMMON = [
  number("area_score", "sooner", "score of the area under the curve: finding sooner is more", 3),
  number("steps", "steps", "steps of the environment, mean of a run"),
  number("training_fetches", "trained on", "fetches of crawls before the one that is measured"),
  number("cpu_seconds", "CPU s", "processor time of a run", 2),
];

function filled(rows, columns) {
  return columns.filter((column) => rows.some((row) => {
    const value = column.value(row);
    return value !== null && value !== undefined && value !== "" &&
      !(value === 0 && ["training_fetches", "illegal"].includes(column.key));
  }));
}

function groupColumns(group) {
  const rows = group.standings;
  const tasks = list(group.tasks).map((task) => {
    const value = (row) => scoreOf((row.per_task || {})[task]);
    return { key: `task ${task}`, title: task, hint: `score on ${task}`, value,
      cell: (row) => figure(value(row), 3) };
  });
  return filled(rows, [...leadingColumns(rows), ...tasks, ...COMMON, sees()]);
}

const scoreOf = (part) => (part && typeof part === "object" ? part.score : part);

function taskColumns(task) {
  const rows = task.standings;
  const found = number("found_mean", task.finds || "found", "within the budget, mean over seeds");
  found.cell = (row) => isNumber(row.found_low)
    ? `${brief(row.found_mean)} (${brief(row.found_low)}\u2013${brief(row.found_high)})`
    : brief(row.found_mean);
  return filled(rows, [...leadingColumns(rows), found,
    number("area", "area", "mean of what was found so far over the budget: sooner is more"),
    number("fetches", "fetches", "mean of a run"), ...COMMON,
    number("illegal", "illegal", "illegal actions, mean of a run"), sees()]);
}

function sees() {
  return { key: "sees", title: "sees", style: "left", hint: "what the agent may look at",
    value: (row) => row.sees, cell: (row) => row.sees || "\u2013" };
}

function agentCell(row) {
  const failed = failedRuns(row);
  const badge = (text, bad) => element("span", { class: bad ? "badge bad" : "badge" }, text);
  return [name(row.agent),
    isPrivileged(row) ? [" ", badge("looks into the trace")] : null,
    isTrained(row) ? [" ", badge("trained before")] : null,
    failed ? [" ", badge(row.failed === true ? "failed" : `${failed} failed`, true)] : null,
  ].flat();
}

function intervalCell(rows) {
  const ends = rows.flatMap((row) => [row.low, row.high, row.score]).filter(isNumber);
  const low = Math.max(-1.5, Math.min(0, ...ends));
  const high = Math.min(2.5, Math.max(1, ...ends));
  const x = (value) => 6 + 180 * (Math.min(high, Math.max(low, value)) - low) / (high - low);
  return (row) => {
    if (!isNumber(row.score)) return "\u2013";
    const known = isNumber(row.low) && isNumber(row.high);
    const text = known ? `${figure(row.score, 3)}, 95 % interval ${figure(row.low, 3)} to ` +
      figure(row.high, 3) : figure(row.score, 3);
    const tall = (value, kind, top, bottom) => drawn("line",
      { class: kind, x1: x(value), x2: x(value), y1: top, y2: bottom });
    return drawn("svg", { class: "interval", viewBox: "0 0 192 24", role: "img",
      "aria-label": text }, drawn("title", {}, text), tall(0, "end", 0, 24), tall(1, "end", 0, 24),
    known && row.high > row.low ? [drawn("rect", { class: "span", x: x(row.low), y: 8,
      width: Math.max(1, x(row.high) - x(row.low)), height: 8, rx: 2 }),
    tall(row.low, "whisker", 6, 18), tall(row.high, "whisker", 6, 18)] : null,
    drawn("circle", { class: "mid", cx: x(row.score), cy: 12, r: 4 }));
  };
}
