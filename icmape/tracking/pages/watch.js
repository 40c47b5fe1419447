"use strict";
// Live curves of a training run. Asks for the rows that it does not have, and draws them as SVG.

const CHARTS = [
  { name: "accuracy", title: "Accuracy at the stop", check: "validation_accuracy", low: 0, high: 1, digits: 3 },
  { name: "tau", title: "Stopping time τ (rounds)", check: "validation_tau", low: 0, digits: 2 },
  { name: "step_cost", title: "Cost of a round ζ", low: 0, digits: 4 },
  { name: "inference_loss", title: "Inference loss (nats)", digits: 3 },
];
const TABLE = [["accuracy", "accuracy", 3], ["tau", "τ", 2], ["step_cost", "ζ", 4], ["inference_loss", "loss", 3],
  ["best_accuracy", "best", 3], ["best_tau", "at τ", 2]];
const EVERY = 1000; // milliseconds between two questions
const HEIGHT = 208, LEFT = 46, RIGHT = 8, TOP = 10, BOTTOM = 22;

let rows = [], bySeed = new Map(), latest = null, pointed = null;
const byId = (name) => document.getElementById(name);

function element(name, attributes = {}, text = "") {
  const svg = ["svg", "path", "line", "text", "g"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== "") made.textContent = text;
  return made;
}

function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds)), pad = (x) => String(x).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}

const shown = (value, digits) => value === null || value === undefined ? "–" : value.toFixed(digits);

function add(state) {
  for (const values of state.rows) {
    const row = Object.fromEntries(state.columns.map((name, i) => [name, values[i]]));
    rows.push(row);
    if (!bySeed.has(row.seed)) bySeed.set(row.seed, []);
    bySeed.get(row.seed).push(row);
  }
}

function points(list, name) {
  return list.filter((row) => row[name] !== null).map((row) => [row.iteration, row[name]]);
}

function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push(value);
  return { found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

function range(chart) {
  let low = chart.low ?? Infinity, high = chart.high ?? -Infinity;
  if (chart.high === undefined) {
    for (const row of rows) {
      for (const value of [row[chart.name], chart.check ? row[chart.check] : null]) {
        if (value === null || value === undefined) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
  }
  if (!Number.isFinite(high)) return [0, 1];
  return high > low ? [low, high + (chart.high === undefined ? 0.05 * (high - low) : 0)] : [low, low + 1];
}

function draw(chart) {
  const svg = byId(`chart-${chart.name}`), width = svg.clientWidth || 320, [low, high] = range(chart);
  const x = (value) => LEFT + (width - LEFT - RIGHT) * value / Math.max(1, latest.iterations);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low));
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.replaceChildren();
  const up = ticks(low, high, 4), along = ticks(0, latest.iterations, width < 420 ? 4 : 8);
  for (const value of up.found) {
    svg.append(element("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }));
    svg.append(element("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(up.digits)));
  }
  for (const value of along.found) {
    const anchor = x(value) > width - 30 ? "end" : value === 0 ? "start" : "middle";
    svg.append(element("text", { x: x(value), y: HEIGHT - 5, "text-anchor": anchor }, value.toLocaleString("en")));
  }
  if (chart.name === "accuracy") {
    svg.append(element("line", { class: "target", x1: LEFT, x2: width - RIGHT, y1: y(latest.target), y2: y(latest.target) }));
  }
  const path = (list, kind, colour) => {
    if (!list.length) return;
    const line = element("path", { class: kind, d: "M" + list.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("L") });
    line.style.stroke = `var(${colour})`;
    svg.append(line);
  };
  latest.seeds.forEach((seed, i) => {
    path(points(bySeed.get(seed) ?? [], chart.name), "played", latest.colours[i]);
    if (chart.check) path(points(bySeed.get(seed) ?? [], chart.check), "check", latest.colours[i]);
  });
  const at = pointed === null ? null : Math.min(pointed, rows.length ? rows[rows.length - 1].iteration : 0);
  if (at !== null) svg.append(element("line", { class: "pointer", x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM }));
  byId(`at-${chart.name}`).textContent = reading(chart, at);
}

function reading(chart, at) {
  const values = latest.seeds.map((seed) => {
    const list = (bySeed.get(seed) ?? []).filter((row) => at === null || row.iteration <= at);
    return list.length ? shown(list[list.length - 1][chart.name], chart.digits) : "–";
  });
  const target = chart.name === "accuracy" ? ` · target ${shown(latest.target, 2)}` : "";
  return `${at === null ? "now" : `iteration ${at.toLocaleString("en")}`}: ${values.join(", ")}${target}`;
}

function build(state) {
  document.title = `${state.title} – icmape train`;
  byId("title").textContent = state.title;
  byId("legend").replaceChildren(...state.seeds.map((seed, i) => {
    const item = element("li"), swatch = element("span", { class: "swatch" });
    swatch.style.background = `var(${state.colours[i]})`;
    item.append(swatch, `seed ${seed}`);
    return item;
  }));
  byId("charts").replaceChildren(...CHARTS.map((chart) => {
    const card = element("section", { class: "chart" }), id = `chart-${chart.name}`;
    const svg = element("svg", { id, role: "img", "aria-label": `${chart.title}, against the iteration` });
    card.append(element("h2", {}, chart.title), element("p", { class: "at", id: `at-${chart.name}` }), svg);
    svg.addEventListener("pointermove", (event) => point(event, svg));
    svg.addEventListener("pointerleave", () => { pointed = null; render(); });
    return card;
  }));
  const head = element("tr");
  head.append(...["seed", ...TABLE.map(([, title]) => title)].map((text) => element("th", { scope: "col" }, text)));
  document.querySelector("#table thead").replaceChildren(head);
}

function point(event, svg) {
  const box = svg.getBoundingClientRect(), width = box.width - LEFT - RIGHT;
  const share = Math.min(1, Math.max(0, (event.clientX - box.left - LEFT) / width));
  pointed = Math.round(share * latest.iterations);
  render();
}

function status(state) {
  const line = byId("state");
  byId("progress").value = state.iterations ? state.iteration / state.iterations : 0;
  line.className = state.ended === "finished" ? "good" : "";
  const done = `${state.iteration.toLocaleString("en")} of ${state.iterations.toLocaleString("en")} iterations`;
  if (state.ended) line.textContent = `The run is ${state.ended}: ${done}, ${clock(state.seconds)} of training.`;
  else if (!state.iteration) line.textContent = `${state.phase} · ${clock(state.phase_seconds)}`;
  else if (state.iteration < state.iterations) {
    line.textContent = `${done} · ${Math.round(state.rounds_per_second).toLocaleString("en")} rounds/s · ` +
      `${clock(state.seconds)} gone, ${clock(state.left)} left`;
  } else line.textContent = `${done} · ${state.phase} · ${clock(state.phase_seconds)}`;
}

function table(state) {
  document.querySelector("#table tbody").replaceChildren(...state.seeds.map((seed) => {
    const list = bySeed.get(seed) ?? [], row = list[list.length - 1] ?? {}, line = element("tr");
    line.append(element("td", {}, String(seed)), ...TABLE.map(([name, , digits]) => element("td", {}, shown(row[name], digits))));
    return line;
  }));
}

function render() {
  if (latest === null) return;
  for (const chart of CHARTS) draw(chart);
}

async function ask() {
  try {
    const reply = await fetch(`state?after=${rows.length}`);
    if (!reply.ok) throw new Error(String(reply.status));
    const state = await reply.json();
    if (latest === null || state.count < rows.length) {
      rows = [];
      bySeed = new Map();
      build(state);
      if (latest !== null) { latest = null; return setTimeout(ask, 0); } // another run at this address: from the start
    }
    add(state);
    latest = state;
    status(state);
    table(state);
    render();
  } catch (error) {
    const line = byId("state");
    line.className = latest?.ended ? line.className : "bad";
    if (!latest?.ended) line.textContent = "No connection: the command has ended, or the machine sleeps. The curves are the last ones.";
  }
  setTimeout(ask, EVERY);
}

window.addEventListener("resize", render);
ask();
