// Problems without a map: columns of actions with who is on them, bars of the posterior, and rounds beside each other.

const MOST_COLUMNS = 12;
const hasColumns = (scene) => scene.actions.length <= MOST_COLUMNS;

function columnsPicture(scene, round, agent, truth, room) {
  const count = scene.actions.length, own = agent !== null, load = own ? ownLoads(scene, round, agent) : loads(scene, round);
  const tallest = own ? Math.max(...range(scene.rounds.length - 1).map((_, at) => Math.max(...ownLoads(scene, at + 1, agent).map((row) => row.length))), 1)
    : scene.slots || Math.max(...range(scene.rounds.length).map((at) => Math.max(...loads(scene, at).map((row) => row.length))), 1);
  const across = own ? Math.ceil(tallest / 8) : 1, lines = Math.ceil(tallest / across);
  const wide = Math.min(own ? 150 : 210, (room - 8) / count), high = Math.min(56, wide * 0.5, 230 / lines), top = 30;
  const left = Math.max(4, (room - wide * count) / 2), bottom = top + lines * high;
  const what = own ? `what ${scene.agent} ${agent + 1} did so far` : `who is where ${after(round)}`;
  const drawn = svg("svg", { viewBox: `0 0 ${room} ${bottom + 44}`, width: room, height: bottom + 44, role: "img", "aria-label": `Columns: ${what}` });
  range(count).forEach((action) => {
    const column = { room, x: left + action * wide, wide, high, bottom, lines, across };
    drawn.append(own ? frameColumn(column) : slotsPicture(scene, round, action, column, truth));
    const r = Math.min(high * 0.4, (wide * 0.5) / across);
    load[action].forEach((one, at) => drawn.append(disc(one, column, at, r, own, scene)));
    const paid = load[action].filter((one) => one.value === 1).length, middle = column.x + wide / 2 + (own ? 0 : 8);
    drawn.append(svg("text", { x: middle, y: bottom + 19, "text-anchor": "middle", class: "strong" }, scene.actions[action]));
    if (scene.values && load[action].length) drawn.append(svg("text", { x: middle, y: bottom + 36, "text-anchor": "middle", class: "soft" },
      `${paid} of ${load[action].length} ${scene.values[1]}`));
  });
  return drawn;
}

const frameColumn = ({ x, wide, high, bottom, lines }) =>
  svg("rect", { x: x + 8, y: bottom - lines * high, width: wide - 16, height: lines * high, rx: 5, fill: "var(--home)", stroke: "var(--line)" });

function slotsPicture(scene, round, action, column, truth) {
  const { x, wide, high, bottom, lines } = column, drawn = svg("g", {});
  if (!scene.slots) return frameColumn(column);
  const chances = scene.rounds[round].posterior[action], { truths } = scene.groups[action];
  range(lines).forEach((slot) => {
    const y = bottom - (slot + 1) * high, chance = chances.slice(slot).reduce((a, b) => a + b, 0);
    drawn.append(svg("rect", { x: x + 30, y: y + 1.5, width: wide - 38, height: high - 3, rx: 4, fill: chance < 0.01 ? "var(--home)" : glow(chance), stroke: "var(--edge)",
      "stroke-width": 0.8, "stroke-dasharray": chance < 0.5 ? "3 3" : null }, svg("title", {}, `${scene.actions[action]} serves ${slot + 1} or more: ${percent(chance)}`)));
    if (scene.rounds[round].decided[action] === slot) drawn.append(square(x + 15, y + high / 2, 27, Math.min(high - 4, 34)));
    if (truth && truths.includes(slot)) drawn.append(ring(x + 15, y + high / 2, 10));
    drawn.append(svg("text", { x: x + 15, y: y + high / 2 + 4.5, "text-anchor": "middle" }, slot + 1));
  });
  return drawn;
}

function disc(one, { room, x, wide, high, bottom, across }, at, r, own, scene) {
  const cx = x + (own ? 8 + (wide - 16) * (((at % across) + 0.5) / across) : 30 + (wide - 38) / 2), cy = bottom - (Math.floor(at / across) + 0.5) * high;
  const hollow = scene.values && one.value === 0, words = scene.values && one.value !== null ? scene.values[one.value] : "";
  return svg("g", { "data-disc": one.agent + 1 },
    svg("circle", { cx, cy, r, fill: hollow ? "var(--page)" : colour(one.agent), stroke: hollow ? colour(one.agent) : "var(--on-agent)", "stroke-width": hollow ? 4 : 1.4 }),
    hollow ? svg("circle", { cx, cy, r: r + 2, fill: "none", stroke: "var(--ink)", "stroke-width": 0.8 }) : null,
    svg("text", { x: cx, y: cy + 4.5, "text-anchor": "middle", class: hollow ? "strong" : "on-agent" }, own ? one.round : one.agent + 1),
    one.stops ? flag(cx + r * 0.75, cy - r * 0.3, 0.9, cx + r * 0.75 + 40 > room ? 44 : 0) : null, svg("title", {}, words));
}

const loads = (scene, round) => scene.actions.map((_, action) => scene.views.flatMap((view, agent) =>
  round > 0 && view[round - 1].action === action ? [{ agent, value: view[round].value, stops: view[round].stops }] : []));
const ownLoads = (scene, round, agent) => scene.actions.map((_, action) => range(round).flatMap((at) =>
  scene.views[agent][at].action === action ? [{ agent, round: at + 1, value: scene.views[agent][at + 1].value }] : []));

function columnsLegend(scene, agent, truth) {
  const entries = [], own = agent !== null;
  if (scene.slots && !own) entries.push(ramp("chance that the arm has this place", "0", "1"),
    entry(sample(svg("rect", { x: 3, y: 4, width: 16, height: 12, rx: 3, fill: "none", stroke: "var(--edge)", "stroke-dasharray": "3 3" })), "below 50 %"),
    entry(sample(square(11, 10, 13)), "answer so far"));
  if (truth && !own && scene.slots) entries.push(entry(sample(ring(11, 10, 6)), "the truth"));
  if (scene.values) {
    const look = { cx: 11, cy: 10, r: 6 };
    entries.push(entry(sample(svg("circle", { ...look, fill: "var(--spot)", stroke: "var(--ink)" })), scene.values[1]),
      entry(sample(svg("circle", { ...look, fill: "var(--page)", stroke: "var(--spot)", "stroke-width": 3 })), scene.values[0]));
  }
  if (own) entries.push(html("span", {}, "numbers: the round in which it was seen"));
  return html("p", { class: "legend" }, entries);
}

// -- bars

function barsPicture(scene, round, truth) {
  const { posterior, decided } = scene.rounds[round];
  const bar = (group, index, name, value, answer) => {
    const right = truth && group.truths.includes(index);
    const track = html("div", { class: "track" }, html("div", { class: "fill", style: `width:${(100 * value).toFixed(1)}%` }));
    const signs = [answer ? sample(square(9, 10, 12), 18) : "", right ? sample(ring(9, 10, 6), 18) : ""];
    return html("div", { class: `bar${answer ? " answer" : ""}` }, html("span", {}, name), track, html("span", {}, percent(value), signs));
  };
  const groups = scene.groups.map((group, part) => html("div", {}, html("h4", {}, group.name),
    group.values
      ? group.values.map((name, index) => bar(group, index, name, posterior[part][index], decided[part] === index))
      : posterior[part].map(([index, name, value]) => bar(group, index, name, value, decided[part] === index))));
  const legend = html("p", { class: "legend" }, entry(sample(square(11, 10, 13)), "answer so far"), truth ? entry(sample(ring(11, 10, 6)), "the truth") : "");
  return html("div", { class: "bars-and-legend" }, html("div", { class: "bars" }, groups), legend);
}

// -- rounds beside each other

function roundsPicture(names, cell, round, scene, width, label) {
  const left = Math.max(...names.map((name) => name.length)) * 7 + 12, high = 26;
  const wide = Math.min(52, Math.max(32, (width - left) / scene.rounds.length));
  const first = Math.max(0, round + 1 - Math.max(1, Math.floor((width - left) / wide)));
  const drawn = svg("svg", { width, height: names.length * high + 20, viewBox: `0 0 ${width} ${names.length * high + 20}`, role: "img", "aria-label": label });
  names.forEach((name, row) => drawn.append(svg("text", { x: 0, y: row * high + 17 }, name)));
  range(round + 1, first).forEach((column) => {
    const x = left + (column - first) * wide;
    names.forEach((_, row) => {
      const look = cell(row, column);
      if (!look) return;
      drawn.append(
        svg("rect", { x, y: row * high + 1, width: wide - 3, height: high - 3, rx: 3, fill: look.stops ? "var(--stop)" : look.value === 1 ? "var(--glow-0)" : "var(--page)",
          stroke: column === round ? "var(--ink)" : "var(--line)", "stroke-width": column === round ? 1.5 : 1 }),
        svg("text", { x: x + (wide - 3) / 2, y: row * high + 17, "text-anchor": "middle", class: look.stops ? "stop-word" : null }, look.text));
    });
    drawn.append(svg("text", { x: x + (wide - 3) / 2, y: names.length * high + 14, "text-anchor": "middle", class: "soft" }, column < scene.rounds.length - 1 ? column + 1 : ""));
  });
  return drawn;
}

function cellOf(scene, agent, column, round) {
  const view = scene.views[agent], row = view[column];
  if (column === scene.rounds.length - 1 && !row.stops) return null; // it would have gone on
  if (row.stops) return { text: "stop", stops: true };
  const after = column < round ? view[column + 1] : {};
  return { text: `${row.short} ${after.mark || ""}`.trim(), value: after.value };
}

const teamRounds = (scene, round, width) =>
  roundsPicture(scene.views.map((_, agent) => `${scene.agent} ${agent + 1}`), (agent, column) => cellOf(scene, agent, column, round),
    round, scene, width, "What everyone chose for every round, and what it returned");
const ownRounds = (scene, round, agent, width) =>
  roundsPicture([`${scene.agent} ${agent + 1}`], (_, column) => cellOf(scene, agent, column, round),
    round, scene, width, `What ${scene.agent} ${agent + 1} chose for every round, and what it saw`);
