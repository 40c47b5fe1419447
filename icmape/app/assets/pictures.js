// Pictures of a game: a map or a grid with what agents did, a posterior and the truth. The drawing is that of views.js.
"use strict";
const pictures = (() => {
  const { html, svg, mapView, gridView, parted, number, colour } = views;
  const kindOf = (book) => book.team.display.actions.kind;
  const word = (book) => book.team.display.agent;
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const action = (book, n) => (n === icmape.STOP ? "STOP" : book.team.actions ? book.team.actions[n] : String(n));

  // -- a reading in words

  const three = (x) => number(Number(x.toPrecision(3)));
  const digits = (x) => (Math.abs(x) < 100 ? x.toPrecision(3) : String(Math.round(x))); // as many for all, with zeros
  const quantity = (book, k) => book.team.display.readings[k] || [];
  const united = (text, unit) => (unit ? `${text} ${unit}` : text);
  // Several readings of one quantity: their number; otherwise 0.
  const repeats = (book, reading) => (typeof book.team.layout === "number" && [reading].flat(Infinity).length > 1 ? [reading].flat(Infinity).length : 0);
  const each = (book, reading) => (repeats(book, reading) ? [reading].flat(Infinity).map(three).join(" · ") : "");
  const means = (book, how = "point at it, or press it under “What if”,") => {
    const count = book.team.layout === 0 ? product(book.team.parts[0].shape) : 1;
    return count > 1 ? html("p", { class: "hint" }, `Each number is the mean of ${count} readings; ${how} to see them.`) : null;
  };
  const product = (sizes) => sizes.reduce((a, b) => a * b, 1);

  // Names of values where the problem has them; of several readings the mean; of a window what was seen, and where.
  function said(book, reading) {
    const { layout, display, parts } = book.team, moves = display.actions.kind === "moves" ? display.actions : {};
    const values = parted(layout, reading);
    return values.map((value, k) => {
      if (k === moves.position) return "";
      const [, unit, names = []] = quantity(book, k), flat = [value].flat(Infinity);
      if (names.length && flat.length === 1) return names[flat[0] - [parts[k].low].flat(Infinity)[0]] || number(flat[0]);
      if (k === moves.window) return inWindow(flat, parts[k].shape, values[moves.position].flat(Infinity));
      if (repeats(book, reading)) return united(digits(flat.reduce((a, b) => a + b, 0) / flat.length), unit);
      if (flat.length > 8) return Math.max(...flat) > 0 ? `highest ${three(Math.max(...flat))}` : "nothing";
      return united(flat.map(three).join(" · "), unit);
    }).filter(Boolean).join("; ");
  }
  // Rows and columns count from 1.
  function inWindow(flat, [high, across], [row, column]) {
    const most = Math.max(...flat), place = (n) => `row ${row + Math.floor(n / across) - (high >> 1) + 1}, column ${column + (n % across) - (across >> 1) + 1}`;
    if (!(most > 0)) return "nothing";
    if (flat.some((x) => x !== 0 && x !== 1)) return `highest ${three(most)} at ${place(flat.indexOf(most))}`;
    return `hit at ${flat.flatMap((x, n) => (x === 1 ? [place(n)] : [])).join(" and ")}`;
  }

  // -- signs: a ring is the truth, dashed for a second hidden thing; a square is the answer

  const cased = (tag, shape, kind, width, label) => svg("g", {}, svg(tag, { ...shape, class: "rim", "stroke-width": width * 2 }), svg(tag, { ...shape, class: kind, "stroke-width": width, "stroke-dasharray": kind === "truth truth-1" ? `${width * 1.7} ${width}` : null }), svg("title", {}, label));
  const ring = (x, y, r, label, kind) => cased("circle", { cx: x, cy: y, r }, `truth truth-${kind}`, r / 5, label);
  const square = (x, y, half) => cased("rect", { x: x - half, y: y - half, width: 2 * half, height: 2 * half, rx: half / 5 }, "answer", half / 6, "the answer");
  const kinds = (marks) => [...new Set(marks.map(([, label]) => label))]; // what hidden things there are
  function legend(book, truth, answered = false) {
    const sample = (sign) => svg("svg", { class: "sample", viewBox: "-10 -10 20 20", "aria-hidden": "true" }, sign);
    const names = kinds(truth.marks).map((name, n) => html("span", { class: `truth-word-${n}` }, sample(ring(0, 0, 7, name, n)), name));
    if (answered && book.team.display.answers) names.push(html("span", {}, sample(square(0, 0, 7)), "the answer"));
    return names.length ? html("p", { class: "legend" }, ...names) : null;
  }
  // Rings and the answer, above all else; `at` gives the middle of a place, and `size` is the radius of a ring.
  function reveal(drawn, book, { truth, answer }, at, size) {
    if (!book.team.display.answers) return drawn;
    if (truth) for (const [place, name] of truth.marks) drawn.append(ring(...at(place), size, name, kinds(truth.marks).indexOf(name)));
    if (answer) drawn.append(square(...at(answer[0]), size * 1.25));
    return drawn;
  }
  // What the colour of a place means, and the same above bars of several answers that may all be right.
  const shown = (book) => book.people.shows || "probability of the answer";
  const shows = (book) => (book.team.answers.kind === "topk" ? html("p", { class: "hint" }, `${capital(shown(book))}:`) : null);

  // scene: {entries: [{agent, action, reading}], seat, target, shades, truth, answer, stoppers, width, label}; shades: a number from
  // 0 to 1 for each place; width: in pixels
  const PICTURES = {
    places(book, { entries, target, seat, shades, truth, answer, stoppers = [], width, label }) {
      const { display, actions } = book.team, about = book.team, last = Math.max(...entries.map(({ round }) => round));
      const marks = entries.map((entry) => ({ action: entry.action, agent: entry.agent, numbered: true, stop: entry.round === last && stoppers.includes(entry.agent), text: seat === undefined ? "" : views.brief(entry.reading, about) }));
      const at = target === null || target === undefined ? null : { action: target, agent: seat || 0 };
      const drawn = mapView({ display, map: book.people.map, marks, target: at, shades, label, names: actions, width });
      const spots = drawn.querySelectorAll(".spot");
      const middle = (place) => ["cx", "cy"].map((name) => Number(spots[place].getAttribute(name)));
      return reveal(drawn, book, { truth, answer }, middle, Number(drawn.dataset.unit) * 3.2);
    },
    cells(book, { entries, target, shades, truth, answer, label }) {
      const { rows, columns, cells } = book.team.display.actions;
      const place = (n) => ({ row: Math.floor(cells[n] / columns), column: cells[n] % columns });
      const spots = entries.map((entry) => ({ ...place(entry.action), agent: entry.agent, text: entry.agent + 1 }));
      return revealed(gridView({ rows, columns, spots, target: target === null || target === undefined ? null : place(target), shades, label }), book, { truth, answer });
    },
    moves(book, { seat, shades, truth, answer, stoppers = [], label, walks }) {
      const { rows, columns, window: seen } = book.team.display.actions;
      const ends = walks.map((walk, agent) => [walk[walk.length - 1], agent]).filter(([, agent]) => seat === undefined || agent === seat);
      const size = seen === null ? [1, 1] : book.team.parts[seen].shape;
      const windows = seat === undefined ? [] : ends.map(([[row, column]]) => ({ row: row - (size[0] >> 1), column: column - (size[1] >> 1), rows: size[0], columns: size[1] }));
      const spots = ends.map(([[row, column], agent]) => ({ row, column, agent, text: agent + 1, stop: stoppers.includes(agent) }));
      const drawn = gridView({ rows, columns, spots, windows, shades, label });
      for (const [, agent] of ends) drawn.insertBefore(way(walks[agent], agent, columns), drawn.querySelector(".past"));
      return revealed(drawn, book, { truth, answer });
    },
    choices: () => null,
  };
  function revealed(drawn, book, scene) {
    const { columns } = book.team.display.actions;
    return reveal(drawn, book, scene, (place) => [(place % columns) + 0.5, Math.floor(place / columns) + 0.5], Math.max(columns / 28, 0.6));
  }
  function way(walk, agent, columns) {
    const aside = ((agent % 5) - 1) * columns / 160;
    const line = svg("polyline", { class: "walk", points: walk.map(([r, c]) => `${c + 0.5 + aside},${r + 0.5 + aside}`).join(" "), "stroke-width": columns / 90 });
    line.style.stroke = colour(agent);
    return line;
  }

  // Rows and columns of all agents, from their starts; nothing where actions are no moves.
  function walksOf(book, { actions, readings, first }) {
    const shown = book.team.display.actions;
    if (shown.kind !== "moves") return [];
    const at = (reading) => parted(book.team.layout, reading)[shown.position].flat(Infinity);
    return shown.starts.map((start, agent) => [first ? at(first[agent]) : start, ...actions.map((_, t) => at(readings[t][agent]))]);
  }
  const entriesOf = ({ actions, readings }, only) => actions.flatMap((row, t) => row.map((action, agent) => ({ round: t, agent, action, reading: readings[t][agent] }))).filter((entry) => only === undefined || entry.agent === only);

  function picture(book, history, scene) {
    const label = scene.label || "what all agents did";
    return PICTURES[kindOf(book)](book, { ...scene, label, entries: entriesOf(history, scene.seat), walks: walksOf(book, history) });
  }
  // What one agent has seen around it, as shades, where its readings are windows.
  function ownShades(book, history, seat) {
    const shown = book.team.display.actions;
    if (shown.kind !== "moves" || shown.window === null) return null;
    const rows = [...(history.first ? [history.first[seat]] : []), ...history.readings.map((row) => row[seat])];
    return views.seenAround(shown, book.team.parts, rows.map((reading) => parted(book.team.layout, reading)));
  }
  // Probabilities as shades of places, if answers are places.
  const placesOf = (book, answer) => (book.team.display.answers ? Array.from(answer.probabilities) : null);

  // A table of rounds: what agents did and read. `cell` may replace the text of a reading.
  function table(book, history, { seat, last, advice, cell } = {}) {
    const agents = Array.from({ length: book.agents }, (_, i) => i);
    const head = html("tr", {}, html("th", { scope: "col" }, "round"), ...agents.map((i) => html("th", { scope: "col" }, views.badge(i, "small"), i === seat ? "you" : `${word(book)} ${i + 1}`)), advice ? html("th", { scope: "col" }, "network, in your seat") : null);
    const body = history.actions.map((row, t) => html("tr", {}, html("th", { scope: "row" }, t + 1), ...agents.map((i) => html("td", {}, cell ? cell(t, i) : html("span", {}, html("strong", { title: each(book, history.readings[t][i]) || null }, said(book, history.readings[t][i])), html("span", { class: "hint what-done" }, action(book, row[i]))))), advice ? html("td", { class: "hint" }, action(book, advice[t])) : null));
    if (last) body.push(html("tr", {}, html("th", { scope: "row" }, history.actions.length + 1), ...agents.map((i) => html("td", {}, last[i] === icmape.STOP ? html("strong", { class: "stop-word" }, "STOP") : html("span", { class: "hint" }, "not done"))), advice ? html("td", { class: "hint" }, advice.length > history.actions.length ? action(book, advice[history.actions.length]) : "") : null));
    return html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "all rounds" }, html("table", {}, html("thead", {}, head), html("tbody", {}, ...body)));
  }

  return { picture, table, said, each, means, shown, shows, ownShades, placesOf, legend, action, word, capital, kindOf };
})();
