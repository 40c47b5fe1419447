// Plays stored episodes, one JSON line each, with an exported team: for the check of an export against JAX.
"use strict";
const fs = require("fs"), icmape = require(process.argv[2]);
const team = icmape.load(JSON.parse(fs.readFileSync(process.argv[3])));
const clean = (x) => Array.from(x, (v) => (Number.isFinite(v) ? v : String(v)));
const flat = (x) => (Array.isArray(x) ? x.flatMap(flat) : [x]);
for (const line of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const { actions, observations, marks } = JSON.parse(line), agents = team.sizes.agents, found = { scores: [], answer: null };
  const marked = (part, t, i) => (team.takesMissing(part) ? marks.map((rows) => Uint8Array.from(flat(i < 0 ? rows[t] : rows[t][i]))) : []);
  const typed = (part, values) => { const out = team.nothing()[part].constructor; return out.from(flat(values)); };
  if (!team.missing.agent) for (let i = 0; i < agents; i++) {
    const move = team.fn("move").given(Int32Array.of(i)), rows = [];
    let out = team.fn("open").call(Int32Array.of(i), ...observations.map((part, k) => typed(k, part[0][i])));
    rows.push(clean(out[out.length - 3]));
    actions.forEach((row, t) => {
      const seen = observations.map((part, k) => typed(k, part[t + 1][i]));
      out = move.call(Int32Array.of(t + 1), Int32Array.of(row[i]), ...seen, ...marked("agent", t, i), ...out.slice(0, -3));
      rows.push(clean(out[out.length - 3]));
    });
    found.scores.push(rows);
  }
  if (!team.missing.inference) {
    let state = team.fn("begin").call(...observations.map((part, k) => typed(k, part[0])));
    actions.forEach((row, t) => {
      const seen = observations.map((part, k) => typed(k, part[t + 1]));
      state = team.fn("add").call(Int32Array.from(row), ...seen, ...marked("inference", t, -1), ...state);
    });
    found.answer = clean(team.fn("answer").call(...state)[0]);
  }
  process.stdout.write(JSON.stringify(found) + "\n");
}
