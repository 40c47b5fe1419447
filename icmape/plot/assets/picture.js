// Pictures of a scene in one round: a map, bars, a table of rounds, the confidence. Each returns a new element.

const COLOURS = ["#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442", "#D55E00"]; // told apart by colour-blind readers
const ACTIONS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]; // as in other pictures of episodes
const KNOWN = ["#ffffff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"];
const READ = ["#fff7e0", "#fec44f", "#ec7014", "#8c2d04"];
const UNREAD = "#eceef1", NOWHERE = "#bfc4cd";
const SIDE = 500; // width of a map in its own units

function build(make, name, attributes, children) {
  const made = make(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}
const html = (name, attributes, ...children) => build((n) => document.createElement(n), name, attributes, children);
const svg = (name, attributes, ...children) =>
  build((n) => document.createElementNS("http://www.w3.org/2000/svg", n), name, attributes, children);

const colour = (index) => COLOURS[index % COLOURS.length];
const paint = (action) => ACTIONS[action % ACTIONS.length];
const range = (count, first = 0) => Array.from({ length: Math.max(0, count - first) }, (_, index) => index + first);
const number3 = (value) => (value >= 0.01 || value === 0 ? String(+value.toPrecision(2)) : value.toExponential(0));

function ramp(stops, fraction) {
  const at = Math.min(1, Math.max(0, fraction)) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const mix = (shift) => {
    const [a, b] = [stops[low], stops[low + 1]].map((stop) => (parseInt(stop.slice(1), 16) >> shift) & 255);
    return Math.round(a + (b - a) * (at - low));
  };
  return `rgb(${mix(16)},${mix(8)},${mix(0)})`;
}

// -- maps

function mapPicture(scene, round, agent, truth) {
  const { rows, columns, ratio } = scene.ground;
  const wide = SIDE / columns, high = wide * ratio, margin = 14;
  const middle = (cell) => [(cell % columns + 0.5) * wide, (Math.floor(cell / columns) + 0.5) * high];
  const name = agent === null ? scene.ground.shows : `what agent ${agent + 1} has read`;
  const box = [-margin, -margin, SIDE + 2 * margin, rows * high + 2 * margin].join(" ");
  const drawn = svg("svg", { viewBox: box, width: SIDE + 2 * margin, role: "img", "aria-label": `Map: ${name}` });
  drawn.append(svg("rect", { width: SIDE, height: rows * high, fill: NOWHERE }));
  drawn.append(agent === null ? teamCells(scene, round, wide, high) : ownCells(scene, round, agent, wide, high));
  const shown = agent === null ? range(scene.views.length) : [agent];
  shown.forEach((one) => drawn.append(way(scene, round, one, wide, high, middle)));
  drawn.append(...discs(scene, round, shown, wide, high));
  if (agent === null) scene.rounds[round].decided.forEach((index) => drawn.append(diamond(middle(scene.ground.cells[index]))));
  if (truth) scene.ground.truths.forEach(([cell, what]) => drawn.append(cross(middle(cell), truthColour(scene, what))));
  return drawn;
}

function cellsPicture(scene, wide, high, look) {
  const { columns, cells } = scene.ground;
  const edge = columns > 16 ? 0 : 1;
  return svg("g", { "shape-rendering": "crispEdges" }, cells.map((cell, index) => {
    const [fill, title] = look(index, cell);
    const place = { x: (cell % columns) * wide, y: Math.floor(cell / columns) * high, width: wide, height: high };
    return svg("rect", { ...place, fill, stroke: edge ? "#fff" : fill, "stroke-width": edge || 0.5 }, svg("title", {}, title));
  }));
}

function teamCells(scene, round, wide, high) {
  const least = scene.ground.faintest, posterior = scene.rounds[round].posterior;
  const fraction = (p) => (least > 0 ? 1 - Math.log(Math.max(p, least)) / Math.log(least) : p);
  return cellsPicture(scene, wide, high, (index) => [ramp(KNOWN, fraction(posterior[index])), `p = ${posterior[index]}`]);
}

function ownReadings(scene, round, agent) {
  const found = new Map();
  scene.views[agent].slice(0, round + 1).forEach((view) => view.readings.forEach(([cell, value]) => {
    if (value !== null) found.set(cell, [...(found.get(cell) || []), value]);
  }));
  return new Map([...found].map(([cell, values]) => [cell, values.reduce((a, b) => a + b) / values.length]));
}

const largestReading = (scene, agent) => Math.max(...ownReadings(scene, scene.rounds.length - 1, agent).values(), 0) || 1;

function ownCells(scene, round, agent, wide, high) {
  const read = ownReadings(scene, round, agent), most = largestReading(scene, agent);
  return cellsPicture(scene, wide, high, (_, cell) =>
    read.has(cell) ? [ramp(READ, read.get(cell) / most), `${number3(read.get(cell))} ${scene.ground.reading}`] : [UNREAD, "not read"]);
}

const truthColour = (scene, what) => (what === scene.ground.truths[0][1] ? "#E3001B" : "#0057D9");

function cross([x, y], fill) {
  const path = `M${x - 8} ${y - 8}l16 16m0 -16l-16 16`;
  return svg("g", { fill: "none", "stroke-linecap": "round" },
    svg("path", { d: path, stroke: "#fff", "stroke-width": 8 }), svg("path", { d: path, stroke: fill, "stroke-width": 4 }));
}

function diamond([x, y]) {
  const path = `M${x} ${y - 20}l20 20l-20 20l-20 -20z`;
  return svg("g", { fill: "none" },
    svg("path", { d: path, stroke: "#fff", "stroke-width": 6 }), svg("path", { d: path, stroke: "#000", "stroke-width": 2.5 }));
}

function way(scene, round, agent, wide, high, middle) {
  const { reach, walks, columns } = scene.ground;
  const views = scene.views[agent].slice(0, round + 1);
  const spots = views.filter((view) => view.spot).map((view) => middle(view.spot[0] * columns + view.spot[1]));
  const drawn = svg("g", { fill: "none", stroke: colour(agent), "stroke-linejoin": "round" });
  if (!spots.length) return drawn;
  const aside = walks ? (agent - (scene.views.length - 1) / 2) * 5 : 0; // so that nobody's way covers another's
  const points = spots.map(([x, y]) => `${x + aside},${y + aside}`).join(" ");
  if (walks) {
    drawn.append(svg("polyline", { points, stroke: "#fff", "stroke-width": 6 }), svg("polyline", { points, "stroke-width": 3.5 }));
  } else {
    spots.slice(0, -1).forEach(([x, y]) => drawn.append(svg("circle", { cx: x, cy: y, r: 5, fill: colour(agent), stroke: "#000" })));
  }
  const [x, y] = spots[spots.length - 1];
  const box = { x: x - reach * wide / 2, y: y - reach * high / 2, width: reach * wide, height: reach * high };
  if (reach > 1) drawn.append(svg("rect", { ...box, stroke: "#fff", "stroke-width": 5 }), svg("rect", { ...box, "stroke-width": 3 }));
  new Set(views.flatMap((view) => view.found)).forEach((cell) => {
    const [cx, cy] = middle(cell), r = 19 + 5 * agent;
    drawn.append(svg("circle", { cx, cy, r, stroke: "#fff", "stroke-width": 7 }), svg("circle", { cx, cy, r, "stroke-width": 4 }));
  });
  return drawn;
}

function discs(scene, round, agents, wide, high) {
  const here = agents.map((agent) => ({ agent, view: scene.views[agent][round] })).filter(({ view }) => view.spot);
  const size = scene.ground.walks ? 13 : Math.min(13, Math.max(10, 0.42 * wide)); // the cell stays visible around it
  return here.map(({ agent, view }) => {
    const beside = here.filter((one) => String(one.view.spot) === String(view.spot)).map((one) => one.agent);
    const shift = (beside.indexOf(agent) - (beside.length - 1) / 2) * 2 * size;
    const x = (view.spot[1] + 0.5) * wide + shift, y = (view.spot[0] + 0.5) * high;
    const drawn = svg("g", {},
      svg("circle", { cx: x, cy: y, r: size, fill: colour(agent), stroke: "#000", "stroke-width": 1.5 }),
      svg("text", { x, y: y + 5, "text-anchor": "middle", style: `font-size:${size + 4}px;font-weight:700;fill:#000` }, agent + 1));
    if (view.stops) {
      drawn.append(svg("rect", { x: x - 23, y: y + 19, width: 46, height: 18, rx: 3, fill: "#000", stroke: "#fff" }),
        svg("text", { x, y: y + 33, "text-anchor": "middle", style: "font-size:14px;font-weight:700;fill:#fff" }, "STOP"));
    }
    return drawn;
  });
}

function mapLegend(scene, agent, truth) {
  const { ground } = scene, logs = ground.faintest > 0;
  const ends = agent === null ? [logs ? number3(ground.faintest) : "0", logs ? "1 (logs)" : "1"] : ["0", number3(largestReading(scene, agent))];
  const stops = agent === null ? KNOWN : READ;
  const entries = [html("span", {}, `${agent === null ? ground.shows : ground.reading}: ${ends[0]}`,
    html("span", { class: "ramp", style: `background:linear-gradient(to right,${stops.join(",")})` }), ends[1])];
  const add = (sign, words, kind) => entries.push(html("span", {}, html("b", { class: kind }, sign), ` ${words}`));
  if (agent === null) add("◇", "answer by now");
  if (ground.cells.length < ground.rows * ground.columns) add("■", "no part of the question", "nowhere");
  if (truth) new Set(ground.truths.map(([, what]) => what)).forEach((what) =>
    add("✕", what, what === ground.truths[0][1] ? "truth" : "other"));
  if (scene.views.some((view, one) => (agent === null || one === agent) && view.some((row) => row.found.length))) add("◯", "hit");
  return html("p", { class: "legend" }, entries);
}

// -- bars

function barsPicture(scene, round, truth) {
  const { posterior, decided } = scene.rounds[round];
  const bar = (group, index, name, value, answer) => {
    const right = truth && group.truths.includes(index);
    const track = html("div", { class: "track" }, html("div", { class: "fill", style: `width:${(100 * value).toFixed(1)}%` }));
    const label = html("span", {}, html("span", { class: "sign" }, answer ? "◆" : ""), name);
    const said = html("span", {}, value.toFixed(2), right ? html("b", { class: "truth" }, " ✕") : "");
    return html("div", { class: `bar${answer ? " answer" : ""}${right ? " true" : ""}` }, label, track, said);
  };
  const groups = scene.groups.map((group, part) => html("div", {}, html("h4", {}, group.name),
    group.values
      ? group.values.map((name, index) => bar(group, index, name, posterior[part][index], decided[part] === index))
      : posterior[part].map(([index, name, value]) => bar(group, index, name, value, decided[part] === index))));
  const legend = html("p", { class: "legend" }, html("span", {}, html("b", {}, "◆"), " answer by now"),
    truth ? html("span", {}, html("b", { class: "truth" }, "✕"), " truth") : "");
  return html("div", {}, html("div", { class: "bars" }, groups), legend);
}

// -- rounds beside each other

function roundsPicture(names, cell, round, scene, width, label) {
  const left = Math.max(...names.map((name) => name.length)) * 7 + 12, high = 26;
  const wide = Math.min(46, Math.max(32, (width - left) / scene.rounds.length));
  const first = Math.max(0, round + 1 - Math.max(1, Math.floor((width - left) / wide)));
  const drawn = svg("svg", { width, height: names.length * high + 20, role: "img", "aria-label": label });
  names.forEach((name, row) => drawn.append(svg("text", { x: 0, y: row * high + 17 }, name)));
  range(round + 1, first).forEach((column) => {
    const x = left + (column - first) * wide;
    names.forEach((_, row) => {
      const look = cell(row, column);
      if (!look) return;
      drawn.append(
        svg("rect", { x, y: row * high + 1, width: wide - 3, height: high - 3, rx: 3, fill: look.fill, "fill-opacity": look.stops ? 1 : 0.4,
          stroke: column === round ? "var(--ink)" : "none", "stroke-width": 1.5 }),
        svg("text", { x: x + (wide - 3) / 2, y: row * high + 17, "text-anchor": "middle", style: look.stops ? "fill:#fff" : null }, look.text));
    });
    drawn.append(svg("text", { x: x + (wide - 3) / 2, y: names.length * high + 14, "text-anchor": "middle", style: "fill:var(--soft)" }, column));
  });
  return drawn;
}

const returned = (view, column, round) => (column < round ? view[column + 1].mark : "");

function teamRounds(scene, round, width) {
  const last = scene.rounds.length - 1;
  return roundsPicture(scene.views.map((_, agent) => `agent ${agent + 1}`), (agent, column) => {
    const row = scene.views[agent][column];
    if (column === last && !row.stops) return null; // it would have gone on
    if (row.stops) return { text: "stop", fill: "#000", stops: true };
    return { text: `${row.short} ${returned(scene.views[agent], column, round)}`.trim(), fill: paint(row.action) };
  }, round, scene, width, "What everyone chose in every round, and what it returned");
}

function ownRounds(scene, round, agent, width) {
  const view = scene.views[agent];
  const tried = range(scene.actions.length).filter((action) => scene.actions.length <= 12 || view.slice(0, round + 1).some((row) => row.action === action));
  const names = [...tried.map((action) => scene.actions[action]), "STOP"];
  return roundsPicture(names, (line, column) => {
    const row = view[column], wanted = line === tried.length ? row.stops : row.action === tried[line];
    if (!wanted || (column === scene.rounds.length - 1 && !row.stops)) return null;
    if (row.stops) return { text: "stop", fill: "#000", stops: true };
    return { text: column < round ? returned(view, column, round) || view[column + 1].seen : "", fill: paint(row.action) };
  }, round, scene, width, `What agent ${agent + 1} chose in every round, and what it saw`);
}

// -- confidence

function confidencePicture(scene, round, width, truth) {
  const left = 34, right = 10, top = 10, high = 110, count = scene.rounds.length;
  const x = (number) => left + 10 + (count > 1 ? number / (count - 1) : 0.5) * (width - left - right - 20);
  const y = (value) => top + (1 - value) * high;
  const drawn = svg("svg", { width, height: top + high + 24, role: "img", "aria-label": "The team's confidence by round, with the target" });
  [0, 0.5, 1].forEach((value) => drawn.append(
    svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), stroke: "var(--line)" }),
    svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end", style: "fill:var(--soft)" }, value)));
  const every = Math.ceil(count / Math.max(1, Math.floor((width - left) / 26)));
  range(count).filter((number) => number % every === 0).forEach((number) =>
    drawn.append(svg("text", { x: x(number), y: top + high + 18, "text-anchor": "middle", style: "fill:var(--soft)" }, number)));
  drawn.append(svg("line", { x1: left, x2: width - right, y1: y(scene.target), y2: y(scene.target), stroke: "var(--ink)", "stroke-dasharray": "5 4" }),
    svg("text", { x: left + 4, y: y(scene.target) + 14, style: "font-size:11px" }, `target ${scene.target}`),
    svg("line", { x1: x(round), x2: x(round), y1: top, y2: top + high, stroke: "var(--soft)" }));
  const known = scene.rounds.slice(0, round + 1);
  drawn.append(svg("polyline", { points: known.map((one, number) => `${x(number)},${y(one.confidence)}`).join(" "), fill: "none", stroke: "var(--accent)", "stroke-width": 2 }));
  known.forEach((one, number) => drawn.append(svg("circle", { cx: x(number), cy: y(one.confidence), r: number === round ? 5.5 : 4,
    fill: truth && !one.right ? "var(--panel)" : "var(--accent)", stroke: "var(--accent)", "stroke-width": 2 })));
  return drawn;
}
