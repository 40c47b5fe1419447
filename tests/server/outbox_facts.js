// What an outbox makes of replies, of the journal's entries, and of a browser without room. Prints one JSON object.
"use strict";
const outbox = require(process.argv[2]);

class Storage {
  constructor(room = Infinity) { Object.assign(this, { map: new Map(), room }); }
  get length() { return this.map.size; }
  key(n) { return [...this.map.keys()][n]; }
  getItem(name) { return this.map.has(name) ? this.map.get(name) : null; }
  setItem(name, value) {
    if (value.length > (this.getItem(name) || "").length && this.map.size >= this.room) throw new Error("full");
    this.map.set(name, value);
  }
  removeItem(name) { this.map.delete(name); }
}
let clock = 1e6;
const open = (storage, post) => new outbox.Outbox({ name: "x", storage, post, changed: () => {}, hold: 3, clock: () => clock });
const states = (box) => box.entries.map((entry) => entry.state).join(" ");
const TELL = { type: "tell", round: 0, action: 1, reading: 2 };

const error = (kind, id) => ({ ok: false, id, error: { kind, text: "a sentence" } });
const REPLIES = { // each with a message's id
  recorded: (id) => [200, { ok: true, type: "tell", id }],
  "a portal's page": () => [200, {}],
  "a portal's JSON": () => [200, { ok: true }],
  "a reply to another message": () => [200, { ok: true, id: "0" }],
  "a tunnel's 404": () => [404, {}],
  "a tunnel's 403": () => [403, {}],
  "a proxy's 401": () => [401, {}],
  "the server's 404": () => [404, error("malformed")],
  "the server's 408": () => [408, error("malformed")],
  "too many": () => [429, error("storage")],
  "a full disk": (id) => [503, error("storage", id)],
  refused: (id) => [422, error("refused", id)],
  conflict: (id) => [409, error("conflict", id)],
};
async function replied(make) {
  const post = async ({ id }) => { const [status, body] = make(id); return { status, ok: status < 300, body, text: "a sentence" }; };
  const box = open(new Storage(), post);
  box.record(TELL);
  clock += 5000;
  await box.flush();
  return [states(box), box.online, box.refused];
}

async function all() {
  const facts = { replies: {} };
  for (const [name, make] of Object.entries(REPLIES)) facts.replies[name] = await replied(make);
  facts.replies["a link that ended"] = await replied(() => [401, error("forbidden")]);

  const accept = async ({ id }) => ({ status: 200, ok: true, body: { ok: true, id } });
  const lacking = open(new Storage(), accept);
  lacking.record(TELL);
  lacking.record({ type: "missed", round: 1, action: 1 });
  clock += 5000;
  await lacking.flush();
  const sent = lacking.sent();
  lacking.merge([{ ...TELL, round: 1, id: "b" }], []);
  facts.sentAfterTheQuestion = states(lacking);
  lacking.merge([{ ...TELL, round: 1, id: "b" }], sent);
  facts.lackedByTheJournal = lacking.entries.map((entry) => [entry.type, entry.round, entry.state]);
  await lacking.flush();
  facts.sentAgain = states(lacking);

  const posted = [], edited = open(new Storage(), async (message) => { posted.push([message.type, message.reading]); return accept(message); });
  const wrong = edited.record(TELL);
  edited.record({ type: "stop", round: 1 });
  edited.pause(wrong.id);
  clock += 30000;
  await edited.flush();
  facts.postedWhileCorrected = [...posted];
  edited.pause(wrong.id);
  clock += 45000;
  await edited.flush();
  await edited.leave();
  facts.postedWhileCorrectionIsRenewed = [...posted];
  edited.correct(wrong.id, { ...TELL, reading: 3 });
  await edited.leave();
  facts.postedWhenLeft = posted;

  const alone = open(new Storage(), accept), held = alone.record(TELL);
  alone.pause(held.id);
  clock += 64000;
  await alone.flush();
  facts.pausedByATabThatIsGone = states(alone);

  const full = open(new Storage(1), accept), kept = full.record(TELL), failures = [];
  for (const act of [() => full.record({ type: "stop", round: 1 }), () => full.correct(kept.id, { ...TELL, reading: 33 })]) {
    try { act(); } catch (problem) { failures.push(problem.message); }
  }
  facts.full = [failures, full.entries.map((entry) => [entry.type, entry.reading, entry.state])];
  full.merge([{ ...TELL, round: 4, id: "d" }]);
  facts.recordedWithoutRoom = full.entries.map((entry) => [entry.round, entry.state]);

  const old = new Storage();
  old.setItem("x", JSON.stringify([{ ...TELL, id: "a", state: "sent", from: 0 }, { ...TELL, round: 1, id: "c", state: "kept", from: 1e15 }]));
  const adopted = open(old, accept);
  await adopted.flush();
  facts.ofVersion13 = [states(adopted), old.getItem("x")];
  return facts;
}
all().then((facts) => console.log(JSON.stringify(facts)));
