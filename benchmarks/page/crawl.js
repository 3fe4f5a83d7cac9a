// The state of a recorded crawl after any number of its steps.

const ALIVE = 0, DEAD = 1, ILLEGAL = 2; // what became of a step

class Crawl {
  constructor(record) {
    this.record = record;
    this.length = record.steps.page.length;
    this.paidAt = this.byStep(list(record.paid), 3);
    this.joinedAt = this.byStep(list(record.joined), 2);
    this.isNews = record.kind === "news";
    this.totals = this.sums();
    this.reset();
  }

  // Where the entries of each step begin in a flat list that is ordered by step.
  byStep(flat, size) {
    const first = new Array(this.length + 1).fill(flat.length);
    for (let i = flat.length - size; i >= 0; i -= size) first[flat[i]] = i;
    for (let step = this.length - 1; step >= 0; step -= 1) first[step] = Math.min(first[step], first[step + 1]);
    return first;
  }

  // Totals after 0, 1, 2, ... steps.
  sums() {
    const steps = this.record.steps;
    const total = (column) => {
      const all = [0];
      for (const value of list(column)) all.push(all[all.length - 1] + value);
      return all;
    };
    return { reward: total(steps.reward), finds: total(steps.finds), fetches: total(steps.fetches) };
  }

  reset() {
    const pages = this.record.pages.x.length;
    this.step = 0;
    this.visitor = new Int32Array(pages).fill(-1); // the forager that was there last
    this.firstVisit = new Int32Array(pages).fill(-1);
    this.dead = new Uint8Array(pages);
    this.worth = new Float64Array(pages);
    this.finder = new Int32Array(pages).fill(-1);
    this.fresh = new Set(); // what the last step was paid for
    this.paths = new Map(); // of each forager: frontier and visited pages (News)
    this.trails = new Map(); // the last visits of each forager
  }

  seek(step) {
    if (step < this.step) this.reset();
    while (this.step < step) this.advance();
  }

  advance() {
    const { steps, paid, joined } = this.record;
    const i = this.step;
    const forager = steps.forager[i], page = steps.page[i];
    this.step += 1;
    this.fresh.clear();
    if (page >= 0) this.visit(forager, page, steps.outcome[i] === DEAD);
    for (let k = this.paidAt[i]; k < this.paidAt[i + 1]; k += 3) {
      this.worth[paid[k + 1]] += Math.max(paid[k + 2], 1e-9);
      this.finder[paid[k + 1]] = forager;
      this.fresh.add(paid[k + 1]);
    }
    if (!this.isNews) return;
    const path = this.paths.get(forager) || { frontier: new Set(), visited: new Set() };
    if (page >= 0) {
      path.visited.add(page);
      path.frontier.delete(page);
    }
    for (let k = this.joinedAt[i]; k < this.joinedAt[i + 1]; k += 2) {
      if (!path.visited.has(joined[k + 1])) path.frontier.add(joined[k + 1]);
    }
    this.paths.set(forager, path);
    if (steps.ends_path[i]) this.paths.delete(forager);
  }

  visit(forager, page, dead) {
    if (this.firstVisit[page] < 0) this.firstVisit[page] = this.step;
    this.visitor[page] = forager;
    this.dead[page] = dead ? 1 : 0;
    const trail = this.trails.get(forager) || [];
    trail.push(page);
    if (trail.length > 12) trail.shift();
    this.trails.set(forager, trail);
  }

  isKnown(page) { return this.record.pages.found[page] <= this.step; }

  isOnFrontier(page) {
    if (!this.isNews) return this.visitor[page] < 0 && this.isKnown(page);
    for (const path of this.paths.values()) if (path.frontier.has(page)) return true;
    return false;
  }

  address(page) { return this.record.pages.base + this.record.pages.url[page]; }

  clock(step) {
    const seconds = step ? this.record.steps.time[step - 1] : 0;
    const time = new Date(Date.parse(this.record.start) + 1000 * seconds);
    return Number.isNaN(time.getTime()) ? `${figure(seconds)} s`
      : time.toISOString().slice(0, 19).replace("T", " ").replaceAll("-", "\u2011");
  }
}
