// Draws where actions are: a map, a grid or a list of choices, as the problem declares it. For both kinds of pages.
"use strict";
const views = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  function filled(node, attributes, parts) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...parts.flat().filter((part) => part !== null && part !== undefined && part !== ""));
    return node;
  }
  const html = (tag, attributes = {}, ...parts) => filled(document.createElement(tag), attributes, parts);
  const svg = (tag, attributes = {}, ...parts) => filled(document.createElementNS(SVG, tag), attributes, parts);
  let palette = 0; // agents with a colour of their own
  const colour = (agent) => {
    palette = palette || Number(getComputedStyle(document.documentElement).getPropertyValue("--agents")) || 1;
    return `var(--agent-${(agent % palette) + 1})`;
  };
  const badge = (agent, small = "") => {
    const node = html("span", { class: `badge ${small}`, "aria-hidden": "true" }, agent + 1);
    node.style.background = colour(agent);
    return node;
  };

  // -- a map: x and y in degrees, x shrunk as the earth is round

  const PHONE = 380; // pixels
  const MARGIN = 0.1; // of each side, that is seen around the region

  class Plane {
    constructor([south, north, west, east]) {
      this.narrow = Math.cos((((south + north) / 2) * Math.PI) / 180);
      const [width, height] = [(east - west) * this.narrow, north - south];
      Object.assign(this, { north, west, all: [-width * MARGIN, -height * MARGIN, width * (1 + 2 * MARGIN), height * (1 + 2 * MARGIN)] });
    }
    x(longitude) { return (longitude - this.west) * this.narrow; }
    y(latitude) { return this.north - latitude; }
  }
  const DEGREE_KM = 111.2;

  function kilometres([a, b], [c, d]) {
    const narrow = Math.cos((((a + c) / 2) * Math.PI) / 180);
    return DEGREE_KM * Math.hypot(a - c, (b - d) * narrow);
  }
  const WINDS = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];

  // Where a place is, in words: near a town, so many kilometres to one side of it.
  function near(place, map) {
    const towns = (map && map.towns) || [];
    const at = (town) => [town.latitude, town.longitude];
    const best = towns.reduce((a, b) => (a && kilometres(place, at(a)) <= kilometres(place, at(b)) ? a : b), null);
    if (!best) return "";
    const [up, right] = [place[0] - best.latitude, (place[1] - best.longitude) * Math.cos((place[0] * Math.PI) / 180)];
    const wind = WINDS[Math.round((Math.atan2(right, up) / Math.PI) * 4 + 8) % 8], far = kilometres(place, at(best));
    return far < 3 ? `at ${best.name}` : `${Math.round(far)} km ${wind} of ${best.name}`;
  }

  function landPath(plane, land) {
    const ring = (numbers) => {
      let path = "";
      for (let n = 0; n < numbers.length; n += 2) path += `${n ? "L" : "M"}${plane.x(numbers[n]).toFixed(4)} ${plane.y(numbers[n + 1]).toFixed(4)}`;
      return `${path}Z`;
    };
    return land.rings.map(ring).join("");
  }

  // A cell in the colours of a posterior, from low to high; a browser that cannot mix colours has one of them.
  function shade(box, part) {
    const cell = svg("rect", { class: "shade", ...box, "fill-opacity": Math.min(0.95, 6 * part).toFixed(3) });
    const high = part >= 0.5 ? 2 : 1, share = Math.min(200 * part - 100 * (high - 1), 100);
    cell.style.fill = `color-mix(in srgb, var(--glow-${high}) ${share.toFixed(1)}%, var(--glow-${high - 1}))`;
    return cell;
  }

  // marks: [{action, agent, text, numbered, stop}]; target: {action, agent} or null; shades: a probability for each action, or null.
  // width: of the page's part that it fills, in pixels; on a wide map words and dots stay as large as on a phone
  function mapView({ display, map, marks = [], target = null, shades = null, zoom = null, label, names, width: pixels = 0 }) {
    const { bounds, coordinates, area } = display.actions, plane = new Plane(bounds);
    const view = zoom ? around(plane, coordinates[zoom.action], zoom.degrees) : plane.all;
    const unit = (view[2] / 100) * Math.min(1, PHONE / pixels); // a hundredth of a phone's width
    const [left, top, width, height] = plane.all;
    const layers = [svg("rect", { class: map && map.lands.length ? "water" : "land home", x: left, y: top, width, height })];
    for (const land of (map && map.lands) || []) {
      const kind = !map.home || land.name === map.home ? "land home" : "land";
      layers.push(svg("path", { class: kind, "fill-rule": "evenodd", d: landPath(plane, land), "stroke-width": unit * 0.35 }));
    }
    const at = (action) => [plane.x(coordinates[action][1]), plane.y(coordinates[action][0])];
    coordinates.forEach((_, action) => {
      const [x, y] = at(action);
      if (shades && area) {
        const [h, w] = [area[0], area[1] * plane.narrow];
        layers.push(shade({ x: x - w / 2, y: y - h / 2, width: w, height: h }, shades[action]));
      }
      layers.push(svg("circle", { class: "spot", cx: x, cy: y, r: unit * 0.7 }));
    });
    const boxes = marks.map((mark) => at(mark.action)).map(([x, y]) => [x - unit * 4, y - unit * 3, x + unit * 4, y + unit * 3]);
    const hangs = Boolean(target) && at(target.action)[1] - unit * 11 < view[1]; // no room above: the pin points up from below
    if (target) boxes.push(pinBox(at(target.action), unit, hangs));
    const grouped = new Map();
    for (const mark of marks) grouped.set(mark.action, [...(grouped.get(mark.action) || []), mark]);
    const past = [...grouped].map(([action, group]) => pastMarks(at(action), group, unit, boxes));
    layers.push(...townMarks(plane, (map && map.towns) || [], unit, view, boxes), ...past.flat());
    if (target) layers.push(pin(at(target.action), target.agent, unit, hangs));
    const described = target ? `${label}: ${names[target.action]}` : label;
    return svg("svg", { class: "map", viewBox: view.map((v) => v.toFixed(4)).join(" "), "data-unit": unit, role: "img", "aria-label": described }, ...layers);
  }

  function around(plane, [latitude, longitude], degrees) { // a view that stays on the map
    const [left, top, most, tall] = plane.all, width = Math.min(degrees, most), height = Math.min(width * 0.62, tall);
    const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
    return [clamp(plane.x(longitude) - width / 2, left, left + most - width), clamp(plane.y(latitude) - height * 0.55, top, top + tall - height), width, height];
  }

  // Towns with their names, right or left of the dot: the best known first, none over another or over a pin.
  const apart = (box) => (other) => box[2] < other[0] || box[0] > other[2] || box[3] < other[1] || box[1] > other[3];
  const pinBox = ([x, y], unit, hangs) => [x - unit * 4, y - unit * (hangs ? 0.3 : 11), x + unit * 4, y + unit * (hangs ? 11 : 0.3)];
  function townMarks(plane, towns, unit, [left, top, width, height], boxes) {
    const size = unit * 4, drawn = [], taken = [...boxes];
    const free = (box) => box[0] > left && box[2] < left + width && box[1] > top && box[3] < top + height && taken.every(apart(box));
    for (const town of towns) {
      const [x, y] = [plane.x(town.longitude), plane.y(town.latitude)], long = size * (0.56 * town.name.length + 0.6);
      const sides = [[x - unit, y - size / 2, x + long, y + size / 2], [x - long, y - size / 2, x + unit, y + size / 2]];
      const side = sides.findIndex(free);
      if (side < 0) continue;
      taken.push(sides[side]);
      const style = { x: x + unit * (side ? -1.6 : 1.6), y: y + unit * 1.3, "font-size": size, "text-anchor": side ? "end" : "start", "stroke-width": unit };
      drawn.push(svg("circle", { class: "town", cx: x, cy: y, r: unit * 0.9 }), svg("text", { class: "town-name", ...style }, town.name));
    }
    return drawn;
  }

  // Where readings were taken, with the last ones below or above: none over other marks, texts or the pin.
  function pastMarks([x, y], group, unit, taken) {
    const agents = [...new Set(group.map((mark) => mark.agent))];
    const dots = agents.map((agent, n) => {
      const numbered = group.some((mark) => mark.numbered), cx = x + unit * (numbered ? 4 : 3) * (n - (agents.length - 1) / 2);
      const dot = svg("circle", { class: "past", cx, cy: y, r: unit * (numbered ? 2.3 : 2), "stroke-width": unit * 0.5 });
      dot.style.fill = colour(agent);
      return numbered ? svg("g", {}, dot, svg("text", { class: "pin-number", x: cx, y: y + unit * 1.1, "font-size": unit * 3.1, "text-anchor": "middle" }, agent + 1)) : dot;
    });
    if (group.some((mark) => mark.stop)) {
      dots.push(stopSign(x, y - unit * 5.4, unit));
      taken.push([x - unit * 5.2, y - unit * 7.4, x + unit * 5.2, y - unit * 3.4]);
    }
    const text = group.map((mark) => mark.text).filter(Boolean).slice(-3).join(" · "), half = unit * text.length * 1.1;
    const places = [y + unit * 6, y - unit * 3.4].map((base) => [x - half, base - unit * 2.8, x + half, base + unit * 0.4]);
    const place = text && places.find((box) => taken.every(apart(box)));
    if (!place) return dots; // the list below the map holds all of them
    taken.push(place);
    return [...dots, svg("text", { class: "past-text", x, y: place[3] - unit * 0.4, "font-size": unit * 3.6, "text-anchor": "middle", "stroke-width": unit }, text)];
  }

  // A sign with its middle at a point.
  function stopSign(x, y, unit) {
    const [wide, high] = [unit * 10.4, unit * 3.9];
    return svg("g", { class: "stop-sign" }, svg("rect", { x: x - wide / 2, y: y - high / 2, width: wide, height: high, rx: unit * 0.8 }), svg("text", { x, y: y + unit * 1.1, "font-size": unit * 3, "text-anchor": "middle" }, "STOP"));
  }

  function pin([x, y], agent, unit, hangs) {
    const shape = svg("path", { class: "pin", d: "M0 0C-1.2 -2.6 -3.6 -4 -3.6 -7A3.6 3.6 0 1 1 3.6 -7C3.6 -4 1.2 -2.6 0 0Z", transform: hangs ? "scale(1 -1)" : null, "stroke-width": 0.45 });
    shape.style.fill = colour(agent);
    const number = svg("text", { class: "pin-number", x: 0, y: hangs ? 8.4 : -5.7, "font-size": 4, "text-anchor": "middle" }, agent + 1);
    return svg("g", { transform: `translate(${x} ${y}) scale(${unit})` }, shape, number);
  }

  // -- a grid, row by row. spots: [{row, column, agent, text}]; windows: [{row, column, rows, columns}]

  function gridView({ rows, columns, spots = [], target = null, windows = [], trail = [], shades = null, label }) {
    const layers = [svg("rect", { class: "ground", x: 0, y: 0, width: columns, height: rows })];
    if (shades) {
      const most = Math.max(...shades, 1e-9);
      shades.forEach((p, n) => {
        if (p > 0.002) layers.push(shade({ x: n % columns, y: Math.floor(n / columns), width: 1, height: 1 }, p / most));
      });
    }
    const lines = [...Array(columns + 1).keys()].map((n) => `M${n} 0V${rows}`).join("") + [...Array(rows + 1).keys()].map((n) => `M0 ${n}H${columns}`).join("");
    layers.push(svg("path", { class: "lines", d: lines, "stroke-width": columns / 500 }));
    for (const w of windows) layers.push(svg("rect", { class: "window", x: w.column, y: w.row, width: w.columns, height: w.rows, "stroke-width": columns / 200 }));
    if (trail.length > 1) layers.push(svg("polyline", { class: "trail", points: trail.map(([r, c]) => `${c + 0.5},${r + 0.5}`).join(" "), "stroke-width": columns / 120 }));
    const size = Math.max(columns / 30, 0.42), margin = Math.max(columns / 100, size * 1.1 - 0.5); // no dot is cut at the edge
    for (const spot of spots) {
      const x = beside(spot, spots, size, columns), y = spot.row + 0.5;
      const dot = svg("circle", { class: "past", cx: x, cy: y, r: size, "stroke-width": size / 6 });
      dot.style.fill = colour(spot.agent);
      layers.push(dot, svg("text", { class: "pin-number", x, y: y + size * 0.36, "font-size": size * 1.1, "text-anchor": "middle" }, spot.text));
      if (spot.stop) layers.push(stopSign(x, y + (y < size * 3 ? 1 : -1) * size * 2, size / 2.6));
    }
    if (target) layers.push(svg("rect", { class: "target", x: target.column, y: target.row, width: 1, height: 1, "stroke-width": columns / 90 }));
    return svg("svg", { class: "map grid-map", viewBox: `${-margin} ${-margin} ${columns + 2 * margin} ${rows + 2 * margin}`, role: "img", "aria-label": label }, ...layers);
  }

  // Where a dot is drawn: agents in one cell stand side by side.
  function beside({ row, column, agent }, spots, size, columns) {
    const agents = [...new Set(spots.filter((spot) => spot.row === row && spot.column === column).map((spot) => spot.agent))];
    const step = size * 1.7, half = (step * (agents.length - 1)) / 2;
    return Math.min(Math.max(column + 0.5, half + 0.5), columns - half - 0.5) - half + step * agents.indexOf(agent);
  }

  // -- moves on a grid

  // Row and column after a move; one that leaves the grid is not made.
  function moved({ rows, columns, moves }, [row, column], action) {
    const [down, right] = moves[action], to = [row + down, column + right];
    return to[0] >= 0 && to[0] < rows && to[1] >= 0 && to[1] < columns ? to : [row, column];
  }
  // The largest value that was seen in each cell, from readings of the team's layout; null if all are 0.
  function seenAround({ rows, columns, window: seen, position }, parts, readings) {
    const cells = new Array(rows * columns).fill(0), [high, across] = parts[seen].shape;
    for (const values of readings) {
      const [row, column] = values[position].flat(Infinity);
      values[seen].flat(Infinity).forEach((value, n) => {
        const r = row + Math.floor(n / across) - (high >> 1), c = column + (n % across) - (across >> 1);
        if (r >= 0 && r < rows && c >= 0 && c < columns) cells[r * columns + c] = Math.max(cells[r * columns + c], value);
      });
    }
    return cells.some((value) => value > 0) ? cells : null;
  }

  // -- words

  // The parts of a reading, from the layout of the problem.
  function parted(layout, reading, values = []) {
    if (typeof layout === "number") values[layout] = reading;
    else if (layout !== null) for (const name of Object.keys(layout)) parted(layout[name], reading[name], values);
    return values;
  }
  const number = (x) => (typeof x === "number" && !Number.isInteger(x) ? String(Number(x.toPrecision(4))) : String(x));
  function few(value) {
    const flat = [value].flat(Infinity);
    return flat.length <= 8 ? flat.map(number).join("\u00a0· ") : `${flat.filter((x) => x !== 0).length} of ${flat.length} not 0`;
  }
  // A reading in words, without the position, which people see on the grid.
  function shown(reading, { layout, display }) {
    const position = display.actions.kind === "moves" ? display.actions.position : -1;
    return parted(layout, reading).filter((_, n) => n !== position).map(few).join("; ");
  }
  function brief(reading, about) { // for a map: of several numbers their mean
    const flat = [reading].flat(Infinity);
    const numbers = typeof about.layout === "number" && flat.length > 1;
    return numbers ? number(Number((flat.reduce((a, b) => a + b, 0) / flat.length).toPrecision(3))) : shown(reading, about);
  }
  function ago(seconds) {
    if (seconds < 5) return "just now";
    if (seconds < 90) return `${Math.round(seconds)} s ago`;
    if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
    return seconds < 129600 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} days ago`;
  }
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const rounds = (whole, partial) => `${plural(whole.length, "whole round")}${partial.length ? ` and ${partial.length} in part` : ""}`;
  return { rounds, html, svg, badge, colour, mapView, gridView, near, moved, seenAround, parted, number, shown, brief, ago, plural };
})();
