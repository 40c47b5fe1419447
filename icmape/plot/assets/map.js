// A map of a scene in one round: a region of the earth with its outlines, or a grid.

const TALLEST = 455; // pixels: the map and the controls above it are on one screen

function frameOf(ground, room) {
  const scale = Math.max(0.64, Math.min(1, room / 720));
  const top = 64 * scale, side = Math.max(20 * scale, ground.region ? 0 : 24), bottom = ground.region ? 16 * scale : 20;
  const more = beyond(ground), across = ground.columns * (1 + more.west + more.east), down = ground.rows * (1 + more.north + more.south);
  const wide = Math.min((room - 2 * side) / across, (TALLEST - top - bottom) / (down * ground.ratio));
  const high = wide * ground.ratio, width = wide * ground.columns, height = high * ground.rows;
  const middle = (cell) => [((cell % ground.columns) + 0.5) * wide, (Math.floor(cell / ground.columns) + 0.5) * high];
  const left = (room - wide * across) / 2 + more.west * width, above = Math.max(top, more.north * height + side);
  return { scale, wide, high, width, height, middle, box: [-left, -above, room, height + above + more.south * height + bottom] };
}

function beyond(ground) {
  // How far the home land goes beyond the cells, as shares of their width and height.
  if (!ground.extent) return { south: 0, north: 0, west: 0, east: 0 };
  const [south, north, west, east] = ground.bounds, [low, high, left, right] = ground.extent;
  return { south: (south - low) / (north - south), north: (high - north) / (north - south), west: (west - left) / (east - west), east: (right - east) / (east - west) };
}

function mapPicture(scene, round, agent, truth, room) {
  const { ground } = scene, frame = frameOf(ground, room), [left, top, width, height] = frame.box;
  const name = agent === null ? `${ground.shows}, and where each ${scene.agent} is` : `what ${scene.agent} ${agent + 1} has read`;
  const drawn = svg("svg", { viewBox: frame.box.join(" "), width, height, role: "img", "aria-label": `Map: ${name}` });
  drawn.append(ground.region ? regionPicture(ground, frame) : gridPicture(ground, frame));
  drawn.append(agent === null ? teamCells(scene, round, frame) : ownCells(scene, round, agent, frame));
  if (ground.region) drawn.append(svg("g", {}, towns(ground, frame)));
  if (truth) ground.truths.forEach(([cell, what]) => drawn.append(truthRing(scene, cell, what, frame)));
  const shown = agent === null ? range(scene.views.length) : [agent];
  shown.forEach((one) => drawn.append(way(scene, round, one, frame)));
  drawn.append(...stars(scene, round, shown, frame), ...pins(scene, round, shown, frame));
  if (agent === null) scene.rounds[round].decided.forEach((index) => // above all, so that nothing hides it
    drawn.append(square(...frame.middle(ground.cells[index]), Math.max(frame.wide, 12) + 5, Math.max(frame.high, 12) + 5)));
  return drawn;
}

// -- the ground

function scalesOf(ground, frame) {
  const [south, north, west, east] = ground.bounds;
  return [(longitude) => ((longitude - west) / (east - west)) * frame.width, (latitude) => ((north - latitude) / (north - south)) * frame.height];
}

function regionPicture(ground, frame) {
  const [x, y] = scalesOf(ground, frame), [left, top, width, height] = frame.box;
  const outline = (ring) => range(ring.length / 2).map((at) => `${at ? "L" : "M"}${x(ring[2 * at]).toFixed(1)} ${y(ring[2 * at + 1]).toFixed(1)}`).join("") + "Z";
  const lands = [...ground.region.lands].sort((a, b) => (a.name === ground.home) - (b.name === ground.home));
  return svg("g", {}, svg("rect", { x: left, y: top, width, height, fill: "var(--water)" }),
    lands.map((land) => svg("path", {
      d: land.rings.map(outline).join(""), "fill-rule": "evenodd", "stroke-linejoin": "round",
      fill: land.name === ground.home ? "var(--home)" : "var(--land)",
      stroke: land.name === ground.home ? "var(--border)" : "var(--line)", "stroke-width": land.name === ground.home ? 1.5 : 1,
    })));
}

function gridPicture(ground, frame) {
  const every = (count) => range(count).filter((at) => count <= 12 || at === 0 || (at + 1) % 5 === 0);
  const label = (place, words, anchor) => svg("text", { ...place, "text-anchor": anchor, class: "soft" }, words);
  return svg("g", {}, svg("rect", { width: frame.width, height: frame.height, fill: "var(--home)", stroke: "var(--edge)" }),
    every(ground.rows).map((row) => label({ x: -6, y: (row + 0.5) * frame.high + 4 }, row + 1, "end")),
    every(ground.columns).map((column) => label({ x: (column + 0.5) * frame.wide, y: frame.height + 15 }, column + 1, "middle")));
}

function towns(ground, frame) {
  const [x, y] = scalesOf(ground, frame);
  const [left, top, width, height] = frame.box, taken = [], size = frame.scale < 0.8 ? 10 : 11.5;
  return ground.region.towns.map((town) => {
    const at = [x(town.longitude), y(town.latitude)], long = 0.58 * size * town.name.length + 8;
    const inside = at[0] > left + 4 && at[0] + long < left + width && at[1] > top + 10 && at[1] < top + height - 6;
    const free = taken.every(([a, b, c]) => Math.abs(b - at[1]) > 15 || at[0] > a + c || a > at[0] + long);
    if (!inside || !free) return null;
    taken.push([...at, long]);
    return svg("g", { class: "town" }, svg("circle", { cx: at[0], cy: at[1], r: 1.8, fill: "var(--soft)" }),
      svg("text", { x: at[0] + 5, y: at[1] + 4, style: `font-size:${size}px` }, town.name));
  });
}

// -- what is known

function cellsPicture(scene, frame, look) {
  const { columns, cells, region } = scene.ground, gap = region ? 1 : frame.wide > 14 ? 0.5 : 0;
  return svg("g", {}, cells.map((cell, index) => {
    const [fill, words] = look(index, cell), [x, y] = frame.middle(cell);
    if (!fill) return region ? svg("circle", { cx: x, cy: y, r: 1.5, fill: "var(--spot)" }) : null;
    const place = { x: x - frame.wide / 2 + gap / 2, y: y - frame.high / 2 + gap / 2, width: frame.wide - gap + (gap ? 0 : 0.4), height: frame.high - gap + (gap ? 0 : 0.4) };
    return svg("rect", { ...place, rx: region ? 2.5 : 0, fill, "fill-opacity": region ? 0.9 : 1 }, svg("title", {}, words));
  }));
}

function teamCells(scene, round, frame) {
  const least = scene.ground.faintest, posterior = scene.rounds[round].posterior;
  const fraction = (p) => (least > 0 ? 1 - Math.log(Math.max(p, least)) / Math.log(least) : p);
  return cellsPicture(scene, frame, (index) => {
    const p = posterior[index], shown = least > 0 ? p > least : p >= 0.01;
    return [shown ? glow(fraction(p)) : null, `${scene.answers ? scene.answers[index] + ": " : ""}${percent(p)}`];
  });
}

function ownReadings(scene, round, agent) {
  const found = new Map();
  scene.views[agent].slice(0, round + 1).forEach((view) => view.readings.forEach(([cell, value]) => {
    if (value !== null) found.set(cell, [...(found.get(cell) || []), value]);
  }));
  return new Map([...found].map(([cell, values]) => [cell, values.reduce((a, b) => a + b) / values.length]));
}

const largestReading = (scene, agent) => Math.max(...ownReadings(scene, scene.rounds.length - 1, agent).values(), 0) || 1;

function ownCells(scene, round, agent, frame) {
  const read = ownReadings(scene, round, agent), most = largestReading(scene, agent);
  return cellsPicture(scene, frame, (_, cell) =>
    read.has(cell) ? [glow(read.get(cell) / most), `${number3(read.get(cell))} ${scene.ground.reading}`] : [null, "not read"]);
}

// -- the truth, ways, pins

const around = (frame) => 0.72 * (Math.max(frame.wide, frame.high, 12) + 5) + 3; // the square of the answer is inside
const isFirst = (scene, what) => what === scene.ground.truths[0][1];
const truthRing = (scene, cell, what, frame) => scene.ground.region ? // as large as the cell: neighbours do not touch
  cased((look) => svg("rect", { x: frame.middle(cell)[0] - frame.wide / 2, y: frame.middle(cell)[1] - frame.high / 2,
    width: frame.wide, height: frame.high, rx: Math.min(frame.wide, frame.high) / 2, ...look }), "var(--truth)", 2.5)
  : isFirst(scene, what) ? ring(...frame.middle(cell), around(frame))
  : ring(...frame.middle(cell), around(frame), "var(--other)", "5 3");

const spotOf = (scene, view, frame) => frame.middle(view.spot[0] * scene.ground.columns + view.spot[1]);

function way(scene, round, agent, frame) {
  const { reach, walks } = scene.ground;
  const spots = scene.views[agent].slice(0, round + 1).filter((view) => view.spot).map((view) => spotOf(scene, view, frame));
  const drawn = svg("g", { fill: "none", stroke: colour(agent), "stroke-linejoin": "round", "stroke-linecap": "round" });
  if (!spots.length) return drawn;
  const aside = walks ? (agent - (scene.views.length - 1) / 2) * 5 : 0; // so that nobody's way covers another's
  const line = walks ? "M" + spots.map(([x, y]) => `${x + aside} ${y + aside}`).join("L")
    : spots.slice(1).map(([x, y], at) => bow(spots[at], [x, y])).join("");
  const look = { d: line, "stroke-dasharray": walks ? null : "1 6" };
  if (line) drawn.append(svg("path", { ...look, stroke: "var(--ink)", "stroke-opacity": 0.55, "stroke-width": walks ? 5.5 : 4.6 }),
    svg("path", { ...look, "stroke-width": walks ? 3.5 : 3 }));
  spots.slice(0, -1).forEach(([x, y]) => drawn.append(svg("circle", { cx: x + aside, cy: y + aside, r: 4, fill: colour(agent), stroke: "var(--on-agent)" })));
  const [x, y] = spots[spots.length - 1];
  if (reach > 1) drawn.append(cased((edge) => svg("rect", { x: x - (reach * frame.wide) / 2, y: y - (reach * frame.high) / 2,
    width: reach * frame.wide, height: reach * frame.high, ...edge }), colour(agent), 2.5));
  return drawn;
}

function bow([x0, y0], [x1, y1]) {
  if (x0 === x1 && y0 === y1) return "";
  return `M${x0} ${y0}Q${(x0 + x1) / 2 - (y1 - y0) * 0.12} ${(y0 + y1) / 2 - Math.abs(x1 - x0) * 0.12} ${x1} ${y1}`;
}

function stars(scene, round, agents, frame) {
  return agents.flatMap((agent) => [...new Set(scene.views[agent].slice(0, round + 1).flatMap((view) => view.found))].map((cell) => {
    const [x, y] = frame.middle(cell);
    return star(x, y, Math.max(0.75 * frame.wide, 11), colour(agent));
  }));
}

function pins(scene, round, agents, frame) {
  const here = agents.map((agent) => ({ agent, view: scene.views[agent][round] })).filter(({ view }) => view.spot)
    .map((one) => ({ ...one, at: spotOf(scene, one.view, frame), aside: 0, half: (one.view.stops ? 23 : 13) * frame.scale }));
  apart(here, 42 * frame.scale);
  return [...here].sort((a, b) => a.at[1] - b.at[1]).map(({ agent, view, at, aside }) => {
    const drawn = svg("g", { transform: `translate(${at[0] + aside} ${at[1]}) scale(${frame.scale})` }, pin(agent, -aside / frame.scale, view.stops));
    const before = round > 0 && scene.views[agent][round - 1].spot;
    if (before && !still.matches) arrive(drawn, spotOf(scene, scene.views[agent][round - 1], frame), at, frame.scale);
    return drawn;
  });
}

function apart(pins, tall) {
  // Heads move sideways until none covers another; tips stay where they are.
  range(60).forEach(() => pins.forEach((one, first) => pins.slice(first + 1).forEach((other) => {
    const gap = other.at[0] + other.aside - one.at[0] - one.aside, lack = one.half + other.half - Math.abs(gap);
    if (lack <= 0 || Math.abs(other.at[1] - one.at[1]) > tall) return;
    const side = gap < 0 ? -1 : 1;
    one.aside -= (side * lack) / 2;
    other.aside += (side * lack) / 2;
  })));
}

function pin(agent, tip, stops) {
  return svg("g", { "data-pin": agent + 1 },
    svg("path", { d: `M${tip} 0C${tip * 0.6 - 3} -8 -12 -13 -12 -23A12 12 0 1 1 12 -23C12 -13 ${tip * 0.6 + 3} -8 ${tip} 0Z`, fill: colour(agent), stroke: "var(--on-agent)", "stroke-width": 1.4 }),
    svg("text", { y: -18.5, "text-anchor": "middle", class: "on-agent" }, agent + 1),
    stops ? flag(0, -35, 1, 22) : null);
}

function arrive(drawn, [x0, y0], [x1, y1], scale) {
  const inside = drawn.firstChild;
  inside.animate([{ transform: `translate(${(x0 - x1) / scale}px,${(y0 - y1) / scale}px)` }, { transform: "none" }], { duration: 500, easing: "ease-in-out" });
}

function mapLegend(scene, agent, truth) {
  const { ground } = scene, logs = ground.faintest > 0, entries = [];
  if (agent === null) {
    entries.push(ramp(ground.shows, logs ? number3(ground.faintest) : "0", logs ? "1 (log scale)" : "1"));
    entries.push(entry(sample(square(11, 10, 13)), "answer so far"));
  } else entries.push(ramp(ground.reading, "0", number3(largestReading(scene, agent))));
  if (truth) new Set(ground.truths.map(([, what]) => what)).forEach((what) => entries.push(
    entry(sample(isFirst(scene, what) ? ring(11, 10, 6) : ring(11, 10, 6, "var(--other)", "5 3")), isFirst(scene, what) ? `the truth: ${what}` : what)));
  const shown = scene.views.filter((_, one) => agent === null || one === agent);
  if (shown.some((view) => view.some((row) => row.found.length))) entries.push(entry(sample(star(11, 10, 8, "var(--spot)")), "found something"));
  if (ground.region) entries.push(entry(sample(svg("circle", { cx: 11, cy: 10, r: 2, fill: "var(--spot)" })), agent === null ? "a cell with less than 1 %" : "a cell without a reading"));
  return html("p", { class: "legend" }, entries);
}
