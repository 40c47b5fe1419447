// An agent's readings over a network that loses requests and replies, with reloads and corrections at random.
// Prints what was shown as kept and never reached the journal, what was doubled, and how often each thing happened.
"use strict";
const outbox = require(process.argv[2]);
const counts = { trials: 0, records: 0, reloads: 0, corrections: 0, lostRequests: 0, lostReplies: 0, lost: 0, doubled: 0, differing: 0 };

function generator(seed) { // numbers in 0..1
  let state = seed;
  return () => { state = (state * 1103515245 + 12345) % 2147483648; return state / 2147483648; };
}
class Storage {
  constructor() { this.map = new Map(); }
  getItem(name) { return this.map.has(name) ? this.map.get(name) : null; }
  setItem(name, value) { this.map.set(name, String(value)); }
}

async function trial(seed) {
  const random = generator(seed), storage = new Storage(), journal = new Map(), shown = new Map();
  let clock = 0, quality = 0.5, doubled = 0;
  const post = async (message) => {
    if (random() > quality) { counts.lostRequests += 1; throw new Error("offline"); }
    const known = journal.get(message.round), content = JSON.stringify(message.reading);
    if (known && known.id !== message.id && known.content !== content) return { status: 409, ok: false, text: "conflict" };
    if (known && known.id !== message.id) doubled += 1;
    if (!known) journal.set(message.round, { id: message.id, content });
    if (random() > quality) { counts.lostReplies += 1; throw new Error("offline"); }
    return random() < 0.05 ? { status: 503, ok: false, text: "later" } : { status: 200, ok: true, text: "" };
  };
  const open = () => new outbox.Outbox({ name: "x", storage, post, changed: () => {}, hold: 3, clock: () => clock });
  let box = open();
  for (let step = 0; step < 60; step++) {
    clock += random() * 4000;
    const chance = random(), last = box.last();
    if (chance < 0.35) {
      const round = box.live().length, reading = Math.floor(random() * 1000);
      box.record({ type: "tell", round, reading });
      shown.set(round, JSON.stringify(reading));
      counts.records += 1;
    } else if (chance < 0.45 && box.canCorrect(last)) {
      const reading = Math.floor(random() * 1000);
      box.correct(last.id, { type: "tell", round: last.round, reading });
      shown.set(last.round, JSON.stringify(reading));
      counts.corrections += 1;
    } else if (chance < 0.6) { box = open(); counts.reloads += 1; }
    else if (chance < 0.7) quality = random() < 0.5 ? 0 : 1 - random() * 0.5;
    else await box.flush();
  }
  quality = 1;
  for (let n = 0; n < 40; n++) { clock += 30000; await box.flush(); }
  counts.trials += 1;
  counts.doubled += doubled;
  for (const [round, content] of shown) {
    const known = journal.get(round), told = box.entries.find((entry) => entry.round === round && entry.state === "refused");
    if (!known) counts.lost += 1;
    else if (known.content !== content && !told) counts.differing += 1;
  }
  if (box.unsent().length) counts.lost += box.unsent().length;
}

(async () => {
  for (let seed = 1; seed <= 300; seed++) await trial(seed);
  console.log(JSON.stringify(counts));
})();
