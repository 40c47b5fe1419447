// An agent's readings over a network that loses requests and replies, or replies itself, with two tabs, reloads and
// corrections at random. Prints what was shown as kept and never reached the journal, what was doubled, and how often each
// thing happened.
"use strict";
const outbox = require(process.argv[2]);
const counts = { trials: 0, records: 0, reloads: 0, corrections: 0, lostRequests: 0, lostReplies: 0, foreignReplies: 0, bothTabs: 0, lost: 0, doubled: 0, differing: 0 };
const FOREIGN = [[200, {}], [404, {}], [403, "<html>"], [200, { ok: true }], [502, {}], [200, { ok: true, id: "another" }]]; // of a portal or a proxy

function generator(seed) { // numbers in 0..1
  let state = seed;
  return () => { state = (state * 1103515245 + 12345) % 2147483648; return state / 2147483648; };
}
class Storage {
  constructor() { this.map = new Map(); }
  get length() { return this.map.size; }
  key(n) { return [...this.map.keys()][n]; }
  getItem(name) { return this.map.has(name) ? this.map.get(name) : null; }
  setItem(name, value) { this.map.set(name, String(value)); }
  removeItem(name) { this.map.delete(name); }
}

async function trial(seed) {
  const random = generator(seed), storage = new Storage(), journal = new Map(), shown = new Map(), under = new Set();
  let clock = 0, quality = 0.5, doubled = 0;
  const reply = (status, body) => ({ status, ok: status === 200, body, text: "" });
  const post = async (message) => {
    for (let n = Math.floor(random() * 6); n > 0; n--) await null; // the other tab goes on
    if (random() > quality) { counts.lostRequests += 1; throw new Error("offline"); }
    if (quality < 1 && random() < 0.1) { counts.foreignReplies += 1; return reply(...FOREIGN[Math.floor(random() * FOREIGN.length)]); }
    const known = journal.get(message.round), content = JSON.stringify(message.reading);
    if (known && known.id !== message.id && known.content !== content) return reply(409, { ok: false, id: message.id, error: { kind: "conflict" } });
    if (known && known.id !== message.id) doubled += 1;
    if (!known) journal.set(message.round, { id: message.id, content });
    if (random() > quality) { counts.lostReplies += 1; throw new Error("offline"); }
    return quality < 1 && random() < 0.05 ? reply(503, { ok: false, id: message.id, error: { kind: "storage" } }) : reply(200, { ok: true, id: message.id });
  };
  const open = () => new outbox.Outbox({ name: "x", storage, post, changed: () => {}, hold: 3, clock: () => clock });
  const tabs = [open(), open()];
  for (let step = 0; step < 60; step++) {
    clock += random() * 4000;
    const chance = random(), tab = Math.floor(random() * 2), box = tabs[tab];
    box.load(); // the browser says that another tab stored something
    const last = box.last();
    if (chance < 0.35) {
      const round = box.entries.reduce((most, entry) => Math.max(most, entry.round + 1), 0), reading = Math.floor(random() * 1000);
      box.record({ type: "tell", round, reading });
      shown.set(round, JSON.stringify(reading));
      counts.records += 1;
    } else if (chance < 0.45 && box.canCorrect(last)) {
      const reading = Math.floor(random() * 1000);
      box.correct(last.id, { type: "tell", round: last.round, reading });
      shown.set(last.round, JSON.stringify(reading));
      counts.corrections += 1;
    } else if (chance < 0.6) { tabs[tab] = open(); counts.reloads += 1; }
    else if (chance < 0.7) quality = random() < 0.5 ? 0 : 1 - random() * 0.5;
    else {
      if (under.size) counts.bothTabs += 1;
      const flush = box.flush().finally(() => under.delete(flush));
      under.add(flush);
      if (random() < 0.5) await flush;
    }
  }
  await Promise.all(under);
  quality = 1;
  for (let n = 0; n < 80; n++) { clock += 30000; await tabs[n % 2].flush(); }
  for (const box of tabs) box.load();
  counts.trials += 1;
  counts.doubled += doubled;
  for (const [round, content] of shown) {
    const known = journal.get(round), told = tabs[0].entries.find((entry) => entry.round === round && entry.state === "refused");
    if (!known) counts.lost += 1;
    else if (known.content !== content && !told) counts.differing += 1;
  }
  counts.lost += tabs[0].unsent().length;
}

(async () => {
  for (let seed = 1; seed <= 300; seed++) await trial(seed);
  console.log(JSON.stringify(counts));
})();
