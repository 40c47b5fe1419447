// The coordinator's page: everything that the journal holds. Nothing of it goes to the agents but the stop.
"use strict";
(() => {
  const { html, badge, mapView, gridView, parted, shown, ago, plural, rounds } = views;
  const POLL = 2; // seconds
  const $ = (id) => document.getElementById(id);
  const put = (id, ...parts) => $(id).replaceChildren(...parts.flat().filter((part) => part !== null && part !== ""));
  const percent = (p) => (p > 0.9995 && p < 1 ? "> 99.9\u00a0%" : `${(100 * p).toFixed(1)}\u00a0%`);
  let about, word, state, drawn = "", answer = null, asked = -1, links = {};

  async function request(path, options = {}) {
    const response = await fetch(path, { ...options, cache: "no-cache" });
    const body = await response.json().catch(() => ({}));
    return { ok: response.ok, body, text: (body.error || {}).text || `error ${response.status}` };
  }

  // -- drawing

  const counting = () => rounds(state.whole, state.partial);
  const person = (agent) => (agent === null ? "a person" : `${word} ${agent + 1}`);
  function update() {
    const furthest = Math.max(...state.agents.map((agent) => agent.round));
    if (state.stopped) {
      const who = state.stops.map((stop) => `${person(stop.agent)} in round ${stop.round + 1}`).join(", ");
      put("title", "The team has stopped");
      put("subtitle", `Stopped by ${who}. The answer counts ${counting()}.`);
    } else {
      put("title", `${plural(state.agents.length, word)} at work`);
      put("subtitle", `The furthest is in round ${Math.min(furthest + 1, about.sizes.horizon)} of at most ${about.sizes.horizon}. The answer would count ${counting()}.`);
      put("whole", `The answer will count ${counting()}.`);
    }
    $("stop").hidden = state.stopped;
    $("early").hidden = state.stopped;
    drawAgents();
    const now = JSON.stringify([state.entries.length, state.stopped, answer]);
    if (now === drawn) return;
    drawn = now;
    drawRounds();
    drawPicture();
  }

  function seconds(time) { return time ? (Date.parse(state.now) - Date.parse(time)) / 1000 : null; }
  function drawAgents() {
    const rows = state.agents.map((agent, i) => {
      const heard = seconds(agent.seen || agent.written), quiet = heard === null || heard > 120;
      const marks = [agent.missed ? `${agent.missed} missed` : "", agent.waiting.length ? "a round is missing" : ""].filter(Boolean).join(", ");
      const copy = (links[i] = links[i] || html("button", { type: "button", class: "small", "aria-label": `copy the link of ${word} ${i + 1}`, onclick: (event) => copyLink(i, event.currentTarget) }, "copy"));
      return html("tr", {}, html("th", { scope: "row" }, badge(i, "small"), `${word} ${i + 1}`), html("td", {}, agent.round + 1), html("td", {}, agent.readings, marks ? html("span", { class: "hint" }, ` ${marks}`) : null), html("td", { class: quiet ? "hint" : "" }, heard === null ? "never" : ago(heard)), html("td", {}, copy));
    });
    const focused = document.activeElement;
    put("agents", html("thead", {}, html("tr", {}, ...[word, "round", "readings", "heard", "link"].map((text) => html("th", { scope: "col" }, text)))), html("tbody", {}, ...rows));
    if (focused && focused.isConnected && focused !== document.activeElement) focused.focus();
  }

  function drawRounds() {
    const agents = state.agents.map((_, i) => i), last = Math.max(-1, ...state.entries.filter((e) => e.type === "tell" || e.type === "missed").map((e) => e.round));
    const find = (kind, i, round) => state.entries.find((e) => e.type === kind && e.agent === i && e.round === round);
    const cell = (i, round) => {
      const told = find("tell", i, round), missed = find("missed", i, round);
      if (!told) return html("td", { class: "hint" }, missed ? "missed" : "·");
      const counts = !state.stopped || state.whole.includes(round) || state.partial.includes(round);
      return html("td", { class: counts ? "" : "hint" }, html("strong", {}, shown(told.reading, about)), html("span", { class: "hint" }, ` ${about.actions[told.action]}${told.late ? ", late" : ""}${counts ? "" : ", not counted"}`));
    };
    const rows = [];
    for (let round = last; round >= 0; round--) rows.push(html("tr", {}, html("th", { scope: "row" }, round + 1), ...agents.map((i) => cell(i, round))));
    const head = html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "round"), ...agents.map((i) => html("th", { scope: "col" }, badge(i, "small"), `${word} ${i + 1}`))));
    put("rounds", head, html("tbody", {}, rows.length ? rows : html("tr", {}, html("td", { colspan: agents.length + 1, class: "hint" }, "No reading yet."))));
  }

  function drawPicture() {
    const { actions } = about.display, told = state.entries.filter((entry) => entry.type === "tell"), shades = answer && answer.places;
    const caption = shades ? html("p", { class: "hint" }, "The stronger its colour, the more probable a place.") : null;
    if (actions.kind === "places") {
      const marks = told.map((entry) => ({ action: entry.action, agent: entry.agent }));
      put("picture", html("h2", {}, "Map"), mapView({ display: about.display, map: about.map, marks, shades, names: about.actions, label: "map of all readings", width: $("picture").clientWidth }), caption);
    } else if (actions.kind !== "choices") {
      const { rows, columns } = actions, spots = actions.kind === "cells" ? told.map(spotOfCell) : lastPositions();
      put("picture", html("h2", {}, "Grid"), gridView({ rows, columns, spots, shades, label: "grid of all agents" }), caption);
    } else put("picture");
  }
  function spotOfCell({ action, agent }) {
    const { cells, columns } = about.display.actions;
    return { row: Math.floor(cells[action] / columns), column: cells[action] % columns, agent, text: agent + 1 };
  }
  function lastPositions() {
    const { starts, position } = about.display.actions;
    return starts.map((start, agent) => {
      const own = state.entries.filter((entry) => entry.agent === agent && entry.reading !== undefined).sort((a, b) => (a.round ?? -1) - (b.round ?? -1)).pop();
      const [row, column] = own ? parted(about.layout, own.reading)[position].flat(Infinity) : start;
      return { row, column, agent, text: agent + 1 };
    });
  }

  function drawAnswer() {
    $("answer").hidden = !answer;
    if (!answer) return;
    const early = !answer.stopped;
    const missing = answer.missing.length ? `; ${plural(answer.missing.length, "reading")} missing` : "";
    const sure = answer.chance ? `${answer.chance}: ${percent(answer.confidence)}` : `${percent(answer.confidence)} sure`;
    const listed = answer.chance ? html("p", {}, `${answer.chance[0].toUpperCase()}${answer.chance.slice(1)}:`) : null;
    const ranks = answer.ranks.map(([name, p, near]) => html("li", {}, html("span", {}, name, near ? html("span", { class: "hint" }, ` ${near}`) : null), html("progress", { max: 1, value: p, "aria-label": `probability of ${name}` }), html("span", { class: "number" }, percent(p))));
    const warning = early ? html("p", { class: "warning" }, "Not for the agents: telling them would be a message between them, and the certificate would not hold.") : null;
    const unsure = !early && answer.target && answer.confidence < answer.target ? html("p", { class: "warning" }, `Less sure than the target of ${percent(answer.target)}.`) : null;
    const unlike = answer.warning ? html("p", { class: "warning" }, `Warning: ${answer.warning}.`) : null;
    put("answer", html("h2", {}, early ? "The answer so far" : "The answer"), html("p", { class: "large" }, html("strong", {}, answer.name), answer.near ? ` ${answer.near}` : null, ` · ${sure}`), warning, unsure, unlike, listed, html("ol", { class: "ranks" }, ...ranks), html("p", { class: "hint" }, `From ${rounds(answer.rounds, answer.partial)}${missing}.`), early ? html("button", { type: "button", onclick: () => { answer = null; drawn = ""; drawAnswer(); update(); } }, "Hide") : null);
  }

  async function fetchAnswer(early) {
    asked = state.entries.length;
    const { ok, body, text } = await request(early ? "answer?early" : "answer");
    if (ok) answer = body;
    else put("network", text);
    drawAnswer();
    update();
  }

  // -- what people do

  async function copyLink(agent, button) {
    const link = about.links[agent];
    try {
      await navigator.clipboard.writeText(link);
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 2000);
    } catch { // browsers give the clipboard to https and localhost only
      const field = html("input", { type: "text", readonly: true, value: link, class: "link", "aria-label": "link" });
      button.replaceWith(field);
      links[agent] = field;
      field.select();
    }
  }

  async function stop() {
    $("confirm").close();
    const headers = { "Content-Type": "application/json" };
    const { ok, text } = await request("messages", { method: "POST", headers, body: JSON.stringify({ type: "stop", session: about.header.session, time: new Date().toISOString() }) });
    if (!ok) put("network", `not stopped: ${text}`);
    await poll();
  }

  async function poll() {
    try {
      const { ok, body, text } = await request("state");
      if (!ok) throw new Error(text);
      state = body;
      put("network", "");
      $("network").className = "on";
      update();
      if (state.stopped && asked !== state.entries.length) await fetchAnswer(false);
    } catch (error) {
      put("network", `not connected: ${error.message}`);
      $("network").className = "off";
    }
  }

  async function begin() {
    try {
      const { ok, body, text } = await request("about.json");
      if (!ok) throw new Error(text);
      about = body;
    } catch (error) {
      put("title", "This page could not be loaded");
      put("subtitle", String(error.message || error));
      setTimeout(begin, 5000);
      return;
    }
    word = about.display.agent;
    put("where", html("strong", {}, "Coordinator"), ` · session ${about.header.session.slice(0, 8)}${about.header.note ? ` · ${about.header.note}` : ""}`);
    $("stop").addEventListener("click", () => $("confirm").showModal());
    $("no").addEventListener("click", () => $("confirm").close());
    $("yes").addEventListener("click", stop);
    $("early").addEventListener("click", () => fetchAnswer(true));
    await poll();
    setInterval(poll, POLL * 1000);
  }
  begin();
})();
